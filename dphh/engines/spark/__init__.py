"""The engine for corpora that outgrow one machine: Apache Spark writes each level to Parquet and
reads it back."""
