"""Watch: the calibration of a model in use, with alarms that stay valid however often one looks."""
