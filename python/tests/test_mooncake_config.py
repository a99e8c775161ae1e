import json

import pytest

from mooncake.mooncake_config import MooncakeConfig, _parse_segment_size, parse_size

REQUIRED = {
    "local_hostname": "localhost",
    "metadata_server": "P2PHANDSHAKE",
    "master_server_address": "127.0.0.1:50051",
}


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch):
    for name in (
        "MOONCAKE_CONFIG_PATH MOONCAKE_MASTER MOONCAKE_LOCAL_HOSTNAME MOONCAKE_TE_META_DATA_SERVER "
        "MOONCAKE_GLOBAL_SEGMENT_SIZE MOONCAKE_LOCAL_BUFFER_SIZE MOONCAKE_PROTOCOL MOONCAKE_DEVICE "
        "MOONCAKE_OFFLOAD_ENABLED MOONCAKE_OFFLOAD_FILE_STORAGE_PATH MOONCAKE_TENANT_ID "
        "MOONCAKE_ENABLE_CLIENT_HTTP_SERVER MOONCAKE_CLIENT_HTTP_PORT"
    ).split():
        monkeypatch.delenv(name, raising=False)


def write(tmp_path, config) -> str:
    path = tmp_path / "mooncake.json"
    path.write_text(json.dumps(config))
    return str(path)


def test_a_file_with_the_required_fields_gets_the_documented_defaults(tmp_path):
    config = MooncakeConfig.from_file(write(tmp_path, REQUIRED | {"something_else": 1}))
    assert config.global_segment_size == 3355443200
    assert config.local_buffer_size == 1 << 30
    assert (config.protocol, config.device_name, config.tenant_id) == ("tcp", "", "default")
    assert (config.enable_ssd_offload, config.ssd_offload_path) == (False, "")
    assert (config.enable_client_http_server, config.client_http_port) == (False, 9300)


@pytest.mark.parametrize("field", sorted(REQUIRED))
def test_a_missing_or_empty_required_field_is_named(tmp_path, field):
    without = {key: value for key, value in REQUIRED.items() if key != field}
    for config in (without, REQUIRED | {field: ""}):
        with pytest.raises(ValueError, match=f"Missing required config field: {field}"):
            MooncakeConfig.from_file(write(tmp_path, config))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (4096, 4096),
        ("4096", 4096),
        ("1kb", 1024),
        ("16 MB", 16 << 20),
        ("1.5gb", 3 << 29),
        ("2TB", 2 << 40),
        ("3g", 3 << 30),
        ("7b", 7),
        ("0", 0),
        ("18014398509481985", 18014398509481985),  # More digits than a float holds.
    ],
)
def test_sizes_are_read_as_people_write_them(text, size):
    assert parse_size(text) == _parse_segment_size(text) == size


@pytest.mark.parametrize("text", ["", "  ", "50%", "gb", "1.2.3mb", "infgb", "nan", True])
def test_a_text_that_is_no_size_is_an_error_that_quotes_it(text):
    with pytest.raises(ValueError, match="Invalid segment size"):
        parse_size(text)


def test_the_texts_of_errors_that_others_match(tmp_path):
    with pytest.raises(ValueError, match=r"Invalid global_segment_size: -1. Size must be non-negative."):
        MooncakeConfig.from_file(write(tmp_path, REQUIRED | {"global_segment_size": -1}))
    with pytest.raises(ValueError, match="Invalid segment size: empty string"):
        parse_size("")
    with pytest.raises(
        ValueError,
        match="Neither the environment variable 'MOONCAKE_CONFIG_PATH' nor 'MOONCAKE_MASTER' is set.",
    ):
        MooncakeConfig.load_from_env()


def test_an_unknown_protocol_is_only_logged_and_lower_cased(tmp_path, caplog):
    config = MooncakeConfig.from_file(write(tmp_path, REQUIRED | {"protocol": "Pigeon"}))
    assert config.protocol == "pigeon"
    assert "pigeon" in caplog.text


@pytest.mark.parametrize("protocol", ["", "  ", 7])
def test_a_protocol_that_is_no_text_is_an_error(tmp_path, protocol):
    with pytest.raises(ValueError, match="Invalid protocol"):
        MooncakeConfig.from_file(write(tmp_path, REQUIRED | {"protocol": protocol}))


def test_the_environment_alone_is_enough(monkeypatch):
    monkeypatch.setenv("MOONCAKE_MASTER", "10.0.0.1:50051")
    monkeypatch.setenv("MOONCAKE_GLOBAL_SEGMENT_SIZE", "4gb")
    monkeypatch.setenv("MOONCAKE_PROTOCOL", "TCP")
    monkeypatch.setenv("MOONCAKE_OFFLOAD_ENABLED", "yes")
    config = MooncakeConfig.load_from_env()
    assert config.master_server_address == "10.0.0.1:50051"
    assert config.local_hostname == "localhost"
    assert config.metadata_server == "P2PHANDSHAKE"
    assert config.global_segment_size == 4 << 30
    assert config.protocol == "tcp"
    assert config.enable_ssd_offload is True


def test_the_file_named_by_the_environment_wins(tmp_path, monkeypatch):
    monkeypatch.setenv("MOONCAKE_CONFIG_PATH", write(tmp_path, REQUIRED | {"local_hostname": "fromfile"}))
    monkeypatch.setenv("MOONCAKE_MASTER", "ignored:1")
    assert MooncakeConfig.load_from_env().local_hostname == "fromfile"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MOONCAKE_OFFLOAD_ENABLED", "perhaps"),
        ("MOONCAKE_CLIENT_HTTP_PORT", "x"),
        ("MOONCAKE_CLIENT_HTTP_PORT", "70000"),
    ],
)
def test_a_malformed_variable_is_named(monkeypatch, name, value):
    monkeypatch.setenv("MOONCAKE_MASTER", "m:1")
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"Invalid {name}: "):
        MooncakeConfig.load_from_env()
