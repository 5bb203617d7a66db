"""
Confidence of a language model
==============================

*Is the model right as often as it says?* Each answer has a stated confidence, and was right or wrong. The example has
four answers to each of 500 prompts, from a simulated over-confident model. Your own come from a file with the columns
`confidence` and `correct`.
"""

# sphinx_gallery_thumbnail_number = 2

import numpy as np

import calibrant as cal
from calibrant import plots

rng = np.random.default_rng(0)
prompts, answers = 500, 4
ease = rng.normal(0.5, 1.5, prompts)  # how easy a prompt is
knows = rng.random(prompts) < 1 / (1 + np.exp(-ease))  # what is not known stays wrong in all answers
correct = rng.random(prompts * answers) < np.where(knows, 0.95, 0.05).repeat(answers)
stated = 1 / (1 + np.exp(-(1.2 * ease.repeat(answers) + rng.normal(0, 0.5, prompts * answers) + 0.8)))
confidence = np.round(stated, 1)  # models state round numbers
subject = np.array(["law", "physics", "history"])[np.arange(prompts) % 3].repeat(answers)

predictions = cal.Predictions.from_confidence(
    correct, confidence, prompt=np.arange(prompts).repeat(answers), subject=subject
)
display = plots.ReliabilityDisplay.from_predictions(predictions, interval=cal.Bootstrap(200, seed=0, groups="prompt"))

# %%
# Answers to one prompt are right or wrong together, so they are not independent. Resampling whole prompts gives a wider
# interval than resampling single answers.

for groups in (None, "prompt"):
    result = cal.ECE(predictions, interval=cal.Bootstrap(500, seed=0, groups=groups))
    print(f"by {groups or 'row'}: {result}")

# %%
# How confident are right answers, and how confident wrong ones?

histogram = plots.ConfidenceHistogramDisplay.from_predictions(predictions)

# %%
# By subject:

print(cal.table(predictions, {"accuracy": cal.ACCURACY, "mcs": cal.MCS, "ece": cal.ECE}, by="subject"))
