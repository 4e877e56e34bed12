"""The tables of Optuna's relational schema that studies are read from and written to.

Optuna's own interface commits every attribute by itself and reads trials one relation at a time.
A study here needs a claim or a result in one transaction and ten thousand trials at once, so
both go straight to the tables, at exactly one known revision of the schema. Optuna's tools read
and write the same tables next to it.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    DateTime,
    Enum,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

REVISION = "v3.2.0.a"
"""Revision of the schema that Optuna 3.2 to 5 make and that the code here was written for."""

metadata = MetaData()

_direction = Enum("NOT_SET", "MINIMIZE", "MAXIMIZE", name="studydirection")
_state = Enum("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING", name="trialstate")
_value_type = Enum("FINITE", "INF_POS", "INF_NEG", name="trialvaluetype")

alembic_version = Table("alembic_version", metadata, Column("version_num", String(32)))

studies = Table(
    "studies",
    metadata,
    Column("study_id", Integer, primary_key=True),
    Column("study_name", String(512), nullable=False, unique=True),
)

study_directions = Table(
    "study_directions",
    metadata,
    Column("study_direction_id", Integer, primary_key=True),
    Column("direction", _direction, nullable=False),
    Column("study_id", Integer, ForeignKey("studies.study_id"), nullable=False),
    Column("objective", Integer, nullable=False),
)

study_user_attributes = Table(
    "study_user_attributes",
    metadata,
    Column("study_user_attribute_id", Integer, primary_key=True),
    Column("study_id", Integer, ForeignKey("studies.study_id")),
    Column("key", String(512)),
    Column("value_json", Text),
    UniqueConstraint("study_id", "key"),
)

study_system_attributes = Table(
    "study_system_attributes",
    metadata,
    Column("study_system_attribute_id", Integer, primary_key=True),
    Column("study_id", Integer, ForeignKey("studies.study_id")),
    Column("key", String(512)),
    Column("value_json", Text),
)

trials = Table(
    "trials",
    metadata,
    Column("trial_id", Integer, primary_key=True),
    Column("number", Integer),
    Column("study_id", Integer, ForeignKey("studies.study_id")),
    Column("state", _state, nullable=False),
    Column("datetime_start", DateTime),
    Column("datetime_complete", DateTime),
)

trial_params = Table(
    "trial_params",
    metadata,
    Column("param_id", Integer, primary_key=True),
    Column("trial_id", Integer, ForeignKey("trials.trial_id")),
    Column("param_name", String(512)),
    Column("param_value", Float(precision=53)),
    Column("distribution_json", Text),
)

trial_values = Table(
    "trial_values",
    metadata,
    Column("trial_value_id", Integer, primary_key=True),
    Column("trial_id", Integer, ForeignKey("trials.trial_id"), nullable=False),
    Column("objective", Integer, nullable=False),
    Column("value", Float(precision=53)),
    Column("value_type", _value_type, nullable=False),
)

trial_user_attributes = Table(
    "trial_user_attributes",
    metadata,
    Column("trial_user_attribute_id", Integer, primary_key=True),
    Column("trial_id", Integer, ForeignKey("trials.trial_id")),
    Column("key", String(512)),
    Column("value_json", Text),
    UniqueConstraint("trial_id", "key"),
)

trial_system_attributes = Table(
    "trial_system_attributes",
    metadata,
    Column("trial_system_attribute_id", Integer, primary_key=True),
    Column("trial_id", Integer, ForeignKey("trials.trial_id")),
    Column("key", String(512)),
    Column("value_json", Text),
    UniqueConstraint("trial_id", "key"),
)

COLUMNS = {
    **{name: frozenset(table.columns.keys()) for name, table in metadata.tables.items()},
    "trial_heartbeats": frozenset({"trial_heartbeat_id", "trial_id", "heartbeat"}),
    "trial_intermediate_values": frozenset(
        {
            "trial_intermediate_value_id",
            "trial_id",
            "step",
            "intermediate_value",
            "intermediate_value_type",
        }
    ),
    "version_info": frozenset({"version_info_id", "schema_version", "library_version"}),
}
"""Names of the columns of all of Optuna's tables, also of those that are not read here."""
