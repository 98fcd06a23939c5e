"""
In a scikit-learn pipeline
==========================

All estimators here are scikit-learn estimators: you can put them into a pipeline, clone them, and search over their
parameters. In this example a classifier works on the components of damaged digits: two fifths of the pixels are
missing, and a tenth are black or white, in training and in test data. scikit-learn's PCA needs the gaps filled in
first.
"""

import matplotlib.pyplot as plt
import numpy as np
from reproduction import load_dataset, missing_pixels, salt_and_pepper
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from frpcag import FRPCAG
from frpcag.plots import plot_embedding

digits = load_dataset("digits")
X, _ = salt_and_pepper(digits.X[:900], 0.1, random_state=0)
X, _ = missing_pixels(X, 0.4, value=np.nan, random_state=1)
X_train, X_test, y_train, y_test = train_test_split(X, digits.y[:900], test_size=300, random_state=0)


def classifier(*steps):
    return make_pipeline(*steps, StandardScaler(), LogisticRegression(max_iter=2000))


# %%
# Both get the same search over the number of components.
models = {
    "mean, PCA": GridSearchCV(
        classifier(SimpleImputer(keep_empty_features=True), PCA(random_state=0)),
        {"pca__n_components": [10, 20, 40]},
        cv=3,
    ),
    "FRPCAG": GridSearchCV(classifier(FRPCAG(random_state=0)), {"frpcag__n_components": [10, 20, 40]}, cv=3),
}
accuracy = {}
for name, model in models.items():
    accuracy[name] = model.fit(X_train, y_train).score(X_test, y_test)
    print(f"{name}: {model.best_params_}, {accuracy[name]:.1%} of the test digits right")

# %%
# Left: accuracy in cross-validation on the training digits. Right: two components of digits that the fit has not seen.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for (name, model), style in zip(models.items(), ("o:", "^-"), strict=True):
    left.plot([10, 20, 40], 100 * model.cv_results_["mean_test_score"], style, label=name)
left.set(xlabel="components", ylabel="right in cross-validation, %")
left.legend(frameon=False)
plot_embedding(models["FRPCAG"].best_estimator_[0].transform(X_test), y_test, ax=right)
right.set_title("test digits, cleaned and projected", fontsize=9)

# %%
# ``set_output(transform="pandas")``, ``clone`` and ``get_feature_names_out`` work as in scikit-learn.
print(models["FRPCAG"].best_estimator_[0].get_feature_names_out()[:3])
