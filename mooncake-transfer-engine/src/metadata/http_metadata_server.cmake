mc_library(http_metadata_server
  HEADERS http_metadata_server.h
  SOURCES http_metadata_server.cc
  PUBLIC mooncake::http)
mc_test(http_metadata_server_test LINK mooncake::http_metadata_server LABELS concurrency)
