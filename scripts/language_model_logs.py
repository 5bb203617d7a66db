"""Logs of language models, written by the tools themselves, for tests that read them.

    python scripts/language_model_logs.py [--python DIR/bin/python] [--out tests/written_by_others]

Without --python, an environment is made and lm-evaluation-harness and Inspect are installed in it. The harness asks its
dummy model, which draws log-likelihoods at random; Inspect asks its mock model, whose answers and probabilities are
drawn here. Both answer a few sums with four choices. The accuracy that each tool reports is written beside its log.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

OUT = Path(__file__).parents[1] / "tests" / "written_by_others"
QUESTIONS = 12
TASK = """
task: sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: {questions}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: [A, B, C, D]
doc_to_target: answer
metric_list: [{{metric: acc}}]
"""
INSPECT = """
import json, math, random, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import write_eval_log
from inspect_ai.model import Logprob, Logprobs, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice

questions = [json.loads(line) for line in open(sys.argv[1])]
random.seed(0)
outputs = []
for _ in questions:
    letter, sure = random.choice("ABCD"), random.uniform(0.3, 0.95)
    output = ModelOutput.from_content("mockllm/model", "ANSWER: " + letter)
    tokens = [Logprob(token="ANSWER:", logprob=-0.01), Logprob(token=" " + letter, logprob=math.log(sure))]
    output.choices[0].logprobs = Logprobs(content=tokens)
    output.usage = ModelUsage(input_tokens=1, output_tokens=2, total_tokens=3)
    outputs.append(output)
samples = [
    Sample(input=asked["question"], choices=list("abcd"), target="ABCD"[asked["answer"]],
           id=index, metadata={"subject": asked["subject"]})
    for index, asked in enumerate(questions)
]
task = Task(dataset=samples, solver=multiple_choice(), scorer=choice(), name="sums")
(log,) = eval(task, model=get_model("mockllm/model", custom_outputs=outputs), log_dir=sys.argv[2], display="none")
write_eval_log(log, sys.argv[2] + "/inspect.json", format="json")
print(log.results.scores[0].metrics["accuracy"].value)
"""


def environment(folder):
    """A Python with both tools."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = Path(folder, "bin", "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "lm-eval[hf]", "inspect-ai"], check=True)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", help="a Python that has both tools")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = options.python or environment(str(folder / "environment"))
        asked = [
            {"question": f"What is {i} and {i}?", "answer": i % 4, "subject": "odd" if i % 2 else "even"}
            for i in range(QUESTIONS)
        ]
        questions = folder / "questions.jsonl"
        questions.write_text("\n".join(map(json.dumps, asked)) + "\n")
        (folder / "sums.yaml").write_text(TASK.format(questions=questions))
        harness = ["-m", "lm_eval", "--model", "dummy", "--tasks", "sums", "--include_path", str(folder)]
        subprocess.run([python, *harness, "--log_samples", "--output_path", str(folder / "harness")], check=True)
        (samples,), (results,) = (list(folder.glob(f"harness/**/{part}_*")) for part in ("samples", "results"))
        (options.out / "samples_sums.jsonl").write_bytes(samples.read_bytes())
        accuracy = {"harness": json.loads(results.read_text())["results"]["sums"]["acc,none"]}
        (folder / "ask.py").write_text(INSPECT)
        command = [python, str(folder / "ask.py"), str(questions), str(folder / "inspect")]
        accuracy["inspect"] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        (archive,) = folder.glob("inspect/*.eval")
        (options.out / "inspect.eval").write_bytes(archive.read_bytes())
        (options.out / "inspect.json").write_bytes((folder / "inspect" / "inspect.json").read_bytes())
        (options.out / "accuracy.json").write_text(json.dumps(accuracy) + "\n")


if __name__ == "__main__":
    main()
