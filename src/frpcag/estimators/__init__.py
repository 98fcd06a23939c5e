"""What users construct: each estimator composes others."""
