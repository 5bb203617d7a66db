"""Training: trials, the networks, data sets and interventions they name, and what comes of them."""
