"""
Confidences of a language model
===============================

*Only the top answer was kept: whether it was right, and how sure the model said it was.* Four answers to each of 500
prompts, drawn here from a made-up model that is too sure; your own come from a file with `confidence` and `correct`.
"""

import numpy as np

import calibrant as cal
from calibrant import plots

rng = np.random.default_rng(0)
prompts, answers = 500, 4
ease = rng.normal(0.5, 1.5, prompts)  # how easy a prompt is
knows = rng.random(prompts) < 1 / (1 + np.exp(-ease))  # what is not known stays wrong, however often it is asked
correct = rng.random(prompts * answers) < np.where(knows, 0.95, 0.05).repeat(answers)
said = 1 / (1 + np.exp(-(1.2 * ease.repeat(answers) + rng.normal(0, 0.5, prompts * answers) + 0.8)))
confidence = np.round(said, 1)  # models like round numbers
subject = np.array(["law", "physics", "history"])[np.arange(prompts) % 3].repeat(answers)

predictions = cal.Predictions.from_confidence(
    correct, confidence, prompt=np.arange(prompts).repeat(answers), subject=subject
)
display = plots.ReliabilityDisplay.from_predictions(predictions, interval=cal.Bootstrap(200, seed=0, groups="prompt"))

# %%
# Answers to one prompt are right or wrong together. Resampled one by one they pretend to be more evidence than they
# are; resampled by prompt, the interval is wider.

for groups in (None, "prompt"):
    result = cal.ECE(predictions, interval=cal.Bootstrap(500, seed=0, groups=groups))
    print(f"by {groups or 'row'}: {result}")

# %%
# By subject:

print(cal.table(predictions, {"accuracy": cal.ACCURACY, "mcs": cal.MCS, "ece": cal.ECE}, by="subject"))
