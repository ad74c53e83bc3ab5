"""For what outgrows one machine: levels on Apache Spark, each written to Parquet and read back."""
