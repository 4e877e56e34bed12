"""What a study found, in sentences, figures and one self-contained HTML page."""
