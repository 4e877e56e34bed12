"""What every search space must do, as tests that run on any of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from optuna.distributions import FloatDistribution

from autotune.errors import InvalidInput
from autotune.jsonable import canonical_json
from autotune.objective import Config
from autotune.space import SearchSpace


class SpaceContract:
    """Subclass it and override `space`: your constraints then hold wherever configs come from.

    Attributes:
        num_configs: How many sampled configs each test looks at.
    """

    num_configs: int = 32

    @pytest.fixture
    def space(self) -> SearchSpace:
        """The space under test."""
        raise NotImplementedError("override the fixture `space`")

    @pytest.fixture
    def predicates(self) -> Mapping[str, Callable[..., Any]]:
        """The functions of the space's predicates by name, which JSON cannot hold."""
        return {}

    @pytest.fixture
    def configs(self, space: SearchSpace) -> list[Config]:
        """Sampled configs."""
        return list(space.sample(self.num_configs, seed=0))

    def test_samples_are_valid(self, space: SearchSpace, configs: list[Config]) -> None:
        """Every sampled config is whole, in order and within the rules."""
        for config in configs:
            assert list(config) == list(space.names)
            assert space.contains(config), space.explain(config)
            assert not space.explain(config)
            space.check(config)

    def test_samples_repeat_by_seed(self, space: SearchSpace, configs: list[Config]) -> None:
        """The seed decides, and nothing else."""
        assert space.sample(self.num_configs, seed=0) == configs
        if space.count() > 100:
            assert space.sample(self.num_configs, seed=1) != configs

    def test_columns_are_the_same_configs(self, space: SearchSpace, configs: list[Config]) -> None:
        """Sampling arrays and sampling configs give the same draws."""
        columns = space.sample_columns(self.num_configs, seed=0)
        assert list(columns) == list(space.names)
        for name, values in columns.items():
            assert values.shape == (self.num_configs,)
            assert values.tolist() == [config[name] for config in configs]

    def test_configs_are_plain_values(self, configs: list[Config]) -> None:
        """No NumPy scalar leaks into a config: storages and trainers want plain values."""
        for config in configs:
            for name, value in config.items():
                assert not isinstance(value, np.generic), f"{name} is a {type(value).__name__}"
            canonical_json(config)

    def test_count_covers_what_is_drawn(self, space: SearchSpace, configs: list[Config]) -> None:
        """A space has a config, and a discrete one no fewer than were seen."""
        assert space.count() >= 1
        distributions = space.optuna_distributions().values()
        if not any(isinstance(d, FloatDistribution) and d.step is None for d in distributions):
            assert len({space.key(config) for config in configs}) <= space.count()

    def test_projection_keeps_the_valid(self, space: SearchSpace, configs: list[Config]) -> None:
        """A valid config is its own nearest one."""
        for config in configs:
            assert space.project(config) == config

    def test_projection_repairs(self, space: SearchSpace, configs: list[Config]) -> None:
        """A mix of two configs, an empty one and nonsense all become valid ones."""
        first, second = configs[0], configs[-1]
        half = len(space.names) // 2
        mixed = {name: (first, second)[i > half][name] for i, name in enumerate(space.names)}
        partial = {name: first[name] for name in space.names[:half]}
        nonsense = {name: "no such value" for name in space.names}
        for broken in (mixed, partial, {}, nonsense, {**first, "no_such_parameter": 1}):
            repaired = space.project(broken)
            assert repaired is not None
            assert space.contains(repaired), space.explain(repaired)

    def test_exclusion_is_obeyed(self, space: SearchSpace, configs: list[Config]) -> None:
        """The nearest config other than one is another one, or there is none."""
        other = space.project(configs[0], exclude={space.key(configs[0])})
        if space.count() > 1:
            assert other is not None
            assert space.contains(other)
            assert space.key(other) != space.key(configs[0])

    def test_faults_are_explained(self, space: SearchSpace, configs: list[Config]) -> None:
        """Unknown, missing and impossible values are all named at once."""
        names = list(space.names)
        broken = {**configs[0], "no_such_parameter": 1, names[0]: "no such value"}
        if len(names) > 1:
            del broken[names[-1]]
        text = "\n".join(str(problem) for problem in space.explain(broken))
        assert not space.contains(broken)
        assert "no_such_parameter" in text
        assert names[0] in text
        assert names[-1] in text
        with pytest.raises(InvalidInput):
            space.check(broken)

    def test_keys_identify(self, space: SearchSpace, configs: list[Config]) -> None:
        """Equal configs have equal keys, in any order and after JSON; others do not."""
        for config in configs:
            shuffled = dict(reversed(list(config.items())))
            assert space.key(shuffled) == space.key(config)
            assert space.key(json.loads(json.dumps(config))) == space.key(config)
        distinct = {canonical_json(config) for config in configs}
        assert len({space.key(config) for config in configs}) == len(distinct)

    def test_encoding_is_numeric(self, space: SearchSpace, configs: list[Config]) -> None:
        """A finite matrix with one named column per feature, equal for configs and columns."""
        matrix = space.encode(configs)
        assert matrix.shape == (len(configs), len(space.feature_names))
        assert matrix.dtype == np.float64
        assert np.isfinite(matrix).all()
        columns = space.sample_columns(self.num_configs, seed=0)
        np.testing.assert_array_equal(space.encode(columns), matrix)
        keys = {space.key(config) for config in configs}
        assert len(np.unique(matrix, axis=0)) == len(keys), "two configs have the same features"

    def test_optuna_round_trip(self, space: SearchSpace, configs: list[Config]) -> None:
        """Optuna's parameters are within its distributions and give the config back."""
        distributions = space.optuna_distributions()
        for config in configs:
            parameters = space.to_optuna(config)
            assert parameters.keys() == distributions.keys()
            for name, value in parameters.items():
                internal = distributions[name].to_internal_repr(value)
                assert distributions[name]._contains(internal), (name, value)
            assert space.from_optuna(json.loads(json.dumps(parameters))) == config

    def test_json_round_trip(
        self,
        space: SearchSpace,
        configs: list[Config],
        predicates: Mapping[str, Callable[..., Any]],
    ) -> None:
        """A space read back from JSON text is the same space."""
        text = json.dumps(space.to_json(), allow_nan=False)
        back = SearchSpace.from_json(json.loads(text), predicates=predicates)
        assert back.fingerprint == space.fingerprint
        assert back.names == space.names
        assert back.sample(self.num_configs, seed=0) == configs
        assert not space.difference(back)

    def test_adopts_its_own(self, space: SearchSpace, configs: list[Config]) -> None:
        """A config of the same space is brought over unchanged."""
        for config in configs:
            assert space.adopt(config, old=space) == config
