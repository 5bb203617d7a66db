"""Design: study files, checked, and the trials that they ask for."""
