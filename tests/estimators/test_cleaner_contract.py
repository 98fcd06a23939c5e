"""The scikit-learn contract of RobustGraphCleaner, without exceptions."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from frpcag import RobustGraphCleaner


@parametrize_with_checks([RobustGraphCleaner()])
def test_cleaner_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)
