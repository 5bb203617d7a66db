"""Training: networks, data sets and interventions."""
