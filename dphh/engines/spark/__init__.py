"""The engine for corpora that outgrow one machine: Spark writes each level, and reads it back."""
