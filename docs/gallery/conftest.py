"""The examples run when the pages are built; importing them in a test run would run them again."""

collect_ignore_glob = ["*.py", "built/*"]
