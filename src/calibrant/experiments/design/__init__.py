"""Design: study files, and the trials that they ask for."""
