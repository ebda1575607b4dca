"""An experiment in the terminal, to walk through: what reports show, drawn by Textual."""
