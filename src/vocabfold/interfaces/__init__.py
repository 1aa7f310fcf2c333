"""The command line and scikit-learn; `vocabfold.spark` is the third."""
