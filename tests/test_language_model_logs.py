"""Logs of language models: those that the tools themselves wrote, and what could be wrong with them."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant as cal
from calibrant import CalibrationInputError
from calibrant.cli.commands import group
from calibrant.files import read
from calibrant.report import Report

LOGS = Path(__file__).parent / "written_by_others"
ACCURACY = json.loads((LOGS / "accuracy.json").read_text())


def records():
    return [json.loads(line) for line in (LOGS / "samples_sums.jsonl").read_text().splitlines()]


def written(folder, lines):
    path = folder / "samples_sums.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def samples():
    return json.loads((LOGS / "inspect.json").read_text())["samples"]


def as_log(folder, changed):
    path = folder / "inspect.json"
    path.write_text(json.dumps({"eval": {}, "samples": changed}))
    return path


# lm-evaluation-harness


def test_the_likelihoods_of_the_choices_are_logits():
    predictions = read(LOGS / "samples_sums.jsonl")
    known = records()
    assert (predictions.kind, len(predictions)) == ("classes", len(known))
    assert predictions.values.tolist() == [[float(pair[0]) for pair in each["filtered_resps"]] for each in known]
    assert predictions.labels.tolist() == [each["doc"]["answer"] for each in known]
    assert cal.ACCURACY(predictions).value == pytest.approx(ACCURACY["harness"], abs=1e-15)
    assert predictions.columns["subject"].tolist() == [each["doc"]["subject"] for each in known]
    assert any("softmax of the choices' log-likelihoods" in note for note in cal.ECE(predictions).notes)


def test_questions_that_were_asked_again_count_once_and_other_filters_not_at_all(tmp_path):
    lines = records()
    again = {**lines[3], "filtered_resps": [["-9", "False"]] * 3 + [["-1", "True"]]}
    other = {**lines[4], "filter": "strict", "filtered_resps": [["-5", "False"]] * 4}
    predictions = read(written(tmp_path, [*lines, again, other]))
    assert len(predictions) == len(lines)
    assert predictions.values[3].tolist() == [-9, -9, -9, -1]
    assert predictions.values[4].tolist() == read(LOGS / "samples_sums.jsonl").values[4].tolist()


@pytest.mark.parametrize(("target", "label"), [(2, 2), ("2", 2), ("[2]", 2), ([2], 2), ("C", 2), (" C", 2)])
def test_the_right_choice_is_a_number_a_list_or_a_text(tmp_path, target, label):
    lines = [{**each, "target": target} for each in records()]
    assert set(read(written(tmp_path, lines)).labels.tolist()) == {label}


def test_questions_of_unlike_choices_have_a_confidence(tmp_path):
    lines = records()
    lines[0]["filtered_resps"] = [["-1", "False"], ["-2", "False"], ["-3", "True"]]
    lines[0]["target"], lines[1]["target"] = "0", "[0, 1, 2, 3]"
    predictions = read(written(tmp_path, lines))
    assert predictions.kind == "confidence"
    assert predictions.labels[:2].tolist() == [1, 1]
    weights = np.exp([-1.0, -2.0, -3.0])
    assert predictions.values[0] == pytest.approx(weights[0] / weights.sum(), abs=1e-15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"filtered_resps": ["the sum is 4"]}, "must have the log-likelihood of every choice"),
        ({"filtered_resps": [["-1", "False"]]}, "must have the log-likelihood of every choice"),
        ({"filtered_resps": [["x", "False"], ["-1", "False"]]}, "must have the log-likelihood of every choice"),
        ({"filtered_resps": [[], []]}, "must have the log-likelihood of every choice"),
        ({"target": "7"}, "must name one of 4 choices in target, got '7' at doc_id 5"),
        ({"target": "all of them"}, "must name one of 4 choices in target"),
        ({"target": []}, "must name one of 4 choices in target"),
    ],
)
def test_what_is_no_question_with_choices_is_refused(tmp_path, change, message):
    lines = records()
    lines[5] |= change
    with pytest.raises(CalibrationInputError, match=message):
        read(written(tmp_path, lines))


# Inspect


@pytest.mark.parametrize("name", ["inspect.eval", "inspect.json"])
def test_answers_have_the_probability_of_their_token(name):
    predictions = read(LOGS / name)
    known = samples()
    tokens = [each["output"]["choices"][0]["logprobs"]["content"][-1]["logprob"] for each in known]
    np.testing.assert_allclose(predictions.values, np.exp(tokens), rtol=1e-15)
    assert cal.ACCURACY(predictions).value == pytest.approx(ACCURACY["inspect"], abs=1e-15)
    assert predictions.columns["subject"].tolist() == [each["metadata"]["subject"] for each in known]
    assert any("probability of the answer's token" in note for note in cal.ECE(predictions).notes)


def test_a_confidence_that_a_scorer_noted_comes_first(tmp_path):
    changed = samples()
    for place, each in enumerate(changed):
        each["scores"]["choice"]["metadata"] = {"confidence": place / 20}
    predictions = read(as_log(tmp_path, changed))
    assert predictions.values.tolist() == [place / 20 for place in range(len(changed))]


def test_answers_that_are_no_token_have_the_probability_of_all_tokens(tmp_path):
    changed = samples()
    for each in changed:
        each["scores"]["choice"]["answer"] = "a longer text"
    predictions = read(as_log(tmp_path, changed))
    contents = [each["output"]["choices"][0]["logprobs"]["content"] for each in changed]
    np.testing.assert_allclose(predictions.values, [np.exp(sum(t["logprob"] for t in each)) for each in contents])


def test_no_answer_is_missing(tmp_path):
    changed = samples()
    changed[0]["scores"]["choice"]["value"] = "N"
    path = as_log(tmp_path, changed)
    assert len(read(path, missing="drop")) == len(changed) - 1
    assert read(path, missing="wrong").labels[0] == 0
    with pytest.raises(CalibrationInputError, match="missing"):
        read(path)


@pytest.mark.parametrize(
    "changed",
    [
        [],
        [{"id": 1}],
        [{"id": 1, "scores": 3}],
        [{"id": 1, "scores": {"choice": {"value": "C"}}, "output": {"choices": 3}}],
        [{"scores": {"choice": {"value": [1]}}, "output": {"choices": [{"logprobs": {"content": [{"token": "A"}]}}]}}],
        [{"scores": {"a": {"value": 7, "metadata": {"confidence": 0.5}}}}],
        [{"scores": {"a": {"value": "C", "metadata": {"confidence": 0.5}}}, "epoch": "x"}],
    ],
)
def test_what_is_no_log_is_refused(tmp_path, changed):
    with pytest.raises(CalibrationInputError):
        read(as_log(tmp_path, changed))


def test_damage_of_an_archive_is_noticed(tmp_path):
    content = (LOGS / "inspect.eval").read_bytes()
    path, whole = tmp_path / "inspect.eval", read(LOGS / "inspect.eval").values.tolist()
    with zipfile.ZipFile(LOGS / "inspect.eval") as archive:
        member = next(each for each in archive.infolist() if each.filename.startswith("samples/"))
    start = member.header_offset + 30 + len(member.filename)
    for place in (*range(start, start + member.compress_size, 37), 0, len(content) // 2, len(content) - 30):
        path.write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
        try:
            assert read(path).values.tolist() == whole
        except CalibrationInputError:
            continue
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(CalibrationInputError):
        read(path)


# JSON


def test_a_list_of_objects_is_read(tmp_path):
    rows = [{"y_true": 1, "score": 0.9}, {"y_true": 0, "score": 0.2}]
    for text in (json.dumps(rows), json.dumps(rows, indent=2), "\n".join(map(json.dumps, rows))):
        (tmp_path / "a.json").write_text(text)
        assert read(tmp_path / "a.json").values.tolist() == [0.9, 0.2]
    (tmp_path / "a.json").write_text("[1, 2]")
    with pytest.raises(CalibrationInputError, match="must be a list of objects"):
        read(tmp_path / "a.json")


# What is made of them


def asked_thrice():
    """Every question with three answers, which are right or wrong together; 40 questions, seed 0."""
    rng, log = np.random.default_rng(0), []
    for number in range(40):
        value, sure = ("C" if rng.random() < 0.6 else "I"), float(rng.uniform(0.5, 1))
        score = {"value": value, "metadata": {"confidence": sure}}
        log += [{"id": f"q{number}", "epoch": epoch, "scores": {"choice": score}} for epoch in (1, 2, 3)]
    return log


def test_answers_to_one_question_are_kept_together(tmp_path):
    log = as_log(tmp_path, asked_thrice())
    predictions = read(log)
    assert predictions.origin["groups"] == "id"
    assert "groups" not in read(as_log(tmp_path, samples())).origin
    as_log(tmp_path, asked_thrice())
    words = ["measure", str(log), "-m", "mcs", "--interval"]
    ended, named = (CliRunner().invoke(group, [*words, *more]) for more in ([], ["--groups", "id"]))
    note = "note: intervals and p-values keep the rows of one id together, as --groups id does\n"
    assert ended.output == named.output + note
    document = json.loads(CliRunner().invoke(group, [*words, "--format", "json"]).output)
    assert document["groups"] == "id"
    together = cal.MCS(predictions, interval=cal.Confidence(groups="id")).interval
    apart = cal.MCS(predictions, interval=cal.Confidence()).interval
    assert document["rows"]["all"]["mcs"]["interval"]["low"] == together.low
    assert together.high - together.low > 1.4 * (apart.high - apart.low)  # three alike: sqrt(3) times as wide
    alone = CliRunner().invoke(group, words[:-1]).output
    assert "together" not in alone


def test_groups_of_a_log_reach_comparisons_and_choices(tmp_path):
    log = str(as_log(tmp_path, asked_thrice()))
    for words in (["compare", log, log, "-m", "mcs", "-n", "50"], ["recalibrate", "choose", log, "-m", "temperature"]):
        ended, named = (CliRunner().invoke(group, [*words, *more]) for more in ([], ["--groups", "id"]))
        assert "keep the rows of one id together" in ended.output
        assert ended.output.replace(ended.output[ended.output.index("note: intervals") :], "") in named.output


def test_the_kind_of_confidence_travels_with_the_number(tmp_path):
    kind = "given the confidence that a scorer noted"
    predictions = read(as_log(tmp_path, asked_thrice()))
    result = cal.ECE(predictions)
    assert any(kind in note for note in cal.Result.from_json(result.to_json()).notes)
    assert any(
        kind in note
        for note in cal.ECE.conclude(cal.Summary.from_bytes(cal.ECE.summarise(predictions).to_bytes())).notes
    )
    assert kind in Report.of(predictions).to_html()


def test_rows_of_a_table_are_sorted(tmp_path):
    log = str(as_log(tmp_path, [{**each, "metadata": {"subject": each["id"][-1]}} for each in asked_thrice()]))
    words = ["measure", log, "-m", "mcs", "--by", "subject", "--format", "csv"]
    plain, ordered = (
        CliRunner().invoke(group, [*words, *more]).output.splitlines() for more in ([], ["--sort", "value"])
    )
    assert sorted(plain) == sorted(ordered)
    errors = [abs(float(line.split(",")[2])) for line in ordered[2:]]
    assert errors == sorted(errors, reverse=True)
    for more in (["--sort", "p"], []):
        wrong = CliRunner().invoke(group, [*(words if more else words[:4]), *(more or ["--sort", "value"])])
        assert (wrong.exit_code, "--sort orders the rows of --by; --sort p needs --null" in wrong.output) == (2, True)


def test_the_page_of_a_log_keeps_answers_to_one_question_together(tmp_path):
    log = as_log(tmp_path, asked_thrice())
    pages = []
    for more in ([], ["--groups", "id"]):
        page = tmp_path / f"page{len(more)}.json"
        ended = CliRunner().invoke(group, ["report", str(log), "-o", str(page), "--date", "", *more])
        assert ended.exit_code == 0, ended.output
        assert ("keep the rows of one id together" in ended.stderr) == (not more)
        pages.append(json.loads(page.read_text())["numbers"])
    assert pages[0] == pages[1]


@pytest.mark.parametrize(("count", "reminded"), [(40, True), (19, False), (120, False)])
def test_a_column_of_questions_that_is_not_used_is_pointed_out_where_it_makes_enough_groups(tmp_path, count, reminded):
    lines = [{"prompt": f"q{row % count}", "confidence": 0.5 + row / 300, "correct": row % 3 > 0} for row in range(120)]
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    words = ["measure", str(path), "-m", "mcs", "--interval"]
    note = "rows of one prompt may depend on each other; --groups prompt lets intervals and p-values allow for that"
    assert (note in CliRunner().invoke(group, words).output) == reminded
    assert note not in CliRunner().invoke(group, [*words, "--groups", "prompt"]).output
    assert note not in CliRunner().invoke(group, words[:-1]).output
