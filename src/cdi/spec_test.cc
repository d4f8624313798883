#include "cdi/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_data.h"
#include "json/parse.h"
#include "json/yaml.h"

namespace dibs::cdi {
namespace {

using testing::HasSubstr;

std::string outcome(const Result<>& result) { return result.ok() ? "" : result.error().message(); }

Spec minimal() {
  return {.version = "0.3.0",
          .kind = "vendor.com/gpu",
          .devices = {{.name = "one", .edits = {.env = {"A=1"}}}}};
}

TEST(CdiSpec, reads_yaml_and_json_alike) {
  const auto yaml = parse_spec(
      "cdiVersion: 0.5.0\nkind: vendor.com/gpu\ndevices:\n- name: \"0\"\n  containerEdits:\n"
      "    deviceNodes:\n    - path: /dev/x\n      hostPath: /dev/y\n      fileMode: 0600\n"
      "      uid: 0\ncontainerEdits:\n  hooks:\n  - hookName: prestart\n    path: /bin/true\n"
      "    timeout: 5\n");
  const auto text = parse_spec(
      R"({"cdiVersion":"0.5.0","KIND":"vendor.com/gpu","devices":[{"name":"0","containerEdits":
          {"deviceNodes":[{"path":"/dev/x","hostPath":"/dev/y","fileMode":384,"uid":0}]}}],
          "containerEdits":{"hooks":[{"hookName":"prestart","path":"/bin/true","timeout":5}]}})");
  ASSERT_TRUE(yaml.ok()) << yaml.error().message();
  ASSERT_TRUE(text.ok()) << text.error().message();
  EXPECT_EQ(write_yaml(*yaml), write_yaml(*text));
  EXPECT_EQ(yaml->devices[0].edits.device_nodes[0].file_mode, 0600u);
  EXPECT_EQ(yaml->devices[0].edits.device_nodes[0].uid, 0u);
  EXPECT_EQ(outcome(validate(*yaml)), "");
}

struct BadText {
  const char* text;
  const char* message;
};

TEST(CdiSpec, is_strict) {
  for (const auto& [text, message] : std::vector<BadText>{
           {"", "no Spec data"},
           {"cdiVersion: 0.3.0\ncolour: red\n", "json: unknown field \"colour\""},
           {"cdiVersion: 0.3.0\ncdiVersion: 0.4.0\n", "already set in map"},
           {"devices: {}\n",
            "json: cannot unmarshal object into Go struct field Spec.devices of type"},
           {"devices: [{containerEdits: {env: [1]}}]\n",
            "ContainerEdits.devices.containerEdits.env"},
           {"containerEdits: {additionalGids: [-1]}\n", "cannot unmarshal number -1"},
           {"containerEdits: {deviceNodes: [{uid: 5000000000}]}\n", "number 5000000000"},
           {"[", "error converting YAML to JSON"},
       }) {
    const auto spec = parse_spec(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_THAT(spec.error().message(), HasSubstr(message)) << text;
  }
}

TEST(CdiSpec, needs_at_least_the_version_of_what_it_uses) {
  const auto minimum = [](void (*change)(Spec&)) {
    Spec spec = minimal();
    change(spec);
    return minimum_version(spec);
  };
  EXPECT_EQ(minimum([](Spec&) {}), "0.3.0");
  EXPECT_EQ(minimum([](Spec& s) { s.edits.mounts = {{"/a", "/b", {}, "bind"}}; }), "0.4.0");
  EXPECT_EQ(minimum([](Spec& s) { s.devices[0].name = "7d0f"; }), "0.5.0");
  EXPECT_EQ(minimum([](Spec& s) { s.edits.device_nodes = {{"/a", "/b"}}; }), "0.5.0");
  EXPECT_EQ(minimum([](Spec& s) { s.kind = "vendor.com/gpu.x"; }), "0.6.0");
  EXPECT_EQ(minimum([](Spec& s) { s.annotations["a"] = "b"; }), "0.6.0");
  EXPECT_EQ(minimum([](Spec& s) { s.devices[0].annotations["a"] = "b"; }), "0.6.0");
  EXPECT_EQ(minimum([](Spec& s) { s.edits.additional_gids = {5}; }), "0.7.0");
  EXPECT_EQ(minimum([](Spec& s) { s.devices[0].edits.intel_rdt.emplace(); }), "0.7.0");
  EXPECT_EQ(minimum([](Spec& s) { s.edits.net_devices = {{"eth0", "net0"}}; }), "1.1.0");
  EXPECT_EQ(minimum([](Spec& s) { s.edits.intel_rdt.emplace().enable_monitoring = true; }),
            "1.1.0");

  Spec old = minimal();
  old.devices[0].name = "0";
  EXPECT_EQ(outcome(validate(old)), "invalid CDI Spec: the spec version must be at least v0.5.0");
  old.version = "v1.1.0";
  EXPECT_EQ(outcome(validate(old)), "");
}

struct BadSpec {
  void (*change)(Spec&);
  const char* message;
};

TEST(CdiSpec, says_what_is_invalid) {
  const auto edits = [](Spec& s) -> ContainerEdits& { return s.devices[0].edits; };
  static const auto edits_of = edits;
  for (const auto& [change, message] : std::vector<BadSpec>{
           {[](Spec& s) { s.version = "0.9.0"; }, "invalid version \"0.9.0\""},
           {[](Spec& s) { s.kind = "gpu"; }, "invalid vendor. empty name"},
           {[](Spec& s) { s.kind = "1v/gpu"; }, "invalid vendor. \"1v\", should start with letter"},
           {[](Spec& s) { s.kind = "v/g-"; },
            "invalid class. \"g-\", should end with a letter or digit"},
           {[](Spec& s) { s.kind = "v/a b"; },
            "invalid class. invalid character ' ' in name \"a b\""},
           {[](Spec& s) { s.devices.clear(); }, "invalid spec, no devices"},
           {[](Spec& s) { s.devices.push_back(s.devices[0]); },
            "invalid spec, multiple device \"one\""},
           {[](Spec& s) { s.devices[0].edits = {}; },
            "failed add device \"one\": invalid device, empty device edits"},
           {[](Spec& s) { s.devices[0].name = "-a"; }, "should start with a letter or digit"},
           {[](Spec& s) { s.edits.env = {"=1"}; },
            "invalid container edits: invalid environment variable \"=1\""},
           {[](Spec& s) { edits_of(s).env = {"A"}; }, "invalid environment variable \"A\""},
           {[](Spec& s) {
              edits_of(s).hooks = {{"later", "/x"}};
            },
            "invalid hook name \"later\""},
           {[](Spec& s) {
              edits_of(s).hooks = {{"poststop", ""}};
            },
            "invalid hook \"poststop\" with empty path"},
           {[](Spec& s) {
              edits_of(s).mounts = {{"", "/x"}};
            },
            "invalid mount, empty host path"},
           {[](Spec& s) {
              edits_of(s).mounts = {{"/x", ""}};
            },
            "invalid mount, empty container path"},
           {[](Spec& s) { edits_of(s).device_nodes = {{""}}; }, "invalid (empty) device path"},
           {[](Spec& s) {
              edits_of(s).device_nodes = {{"/x", "", "z"}};
            },
            "device \"/x\": invalid type \"z\""},
           {[](Spec& s) { edits_of(s).device_nodes = {{.path = "/x", .permissions = "rx"}}; },
            "device \"/x\": invalid permissions \"rx\""},
           {[](Spec& s) {
              s.version = "1.1.0";
              edits_of(s).intel_rdt = IntelRdt{.clos_id = "a/b"};
            },
            "invalid ClosID"},
           {[](Spec& s) {
              s.version = "1.1.0";
              edits_of(s).net_devices = {{"eth0", "a"}, {"eth1", "a"}};
            },
            "duplicate Name \"a\" with HostInterfaceName \"eth1\" and \"eth0\""},
           {[](Spec& s) {
              s.version = "0.6.0";
              s.annotations["a/b/c"] = "";
            },
            "vendor.com/gpu.annotations.a/b/c is invalid"},
       }) {
    Spec spec = minimal();
    change(spec);
    EXPECT_THAT(outcome(validate(spec)), HasSubstr(message));
  }
}

TEST(CdiSpec, writes_the_bytes_of_the_other_library) {
  Spec spec{.version = "0.6.0",
            .kind = "k8s.gpu.example.com/gpu",
            .annotations = {{"a10", "x"}, {"a9", "true"}, {"multi", "l1\nl2\n"}},
            .devices = {{.name = "common",
                         .edits = {.env = {"A=", "C=: x", "D=# x", "F=a\nb", "a\tb=1", "é=ü",
                                           " x=1", "x=1 ", "H={a}", "\xF0\x9F\x98\x80=1"}}},
                        {.name = "0", .annotations = {{"k", "v"}}}},
            .edits = {.env = {"X=1"}}};
  spec.devices[1].edits.device_nodes = {
      {.path = "/dev/x", .major = 3, .file_mode = 0640, .permissions = "rw"}};
  spec.devices[1].edits.hooks = {{"createContainer", "/bin/x", {"a", "--b=c"}, {}, 5}};
  spec.devices[1].edits.mounts = {{"/a", "/b", {"ro", "bind"}, ""}};
  spec.devices[1].edits.additional_gids = {1, 2};

  EXPECT_EQ(write_yaml(spec), R"(---
cdiVersion: 0.6.0
kind: k8s.gpu.example.com/gpu
annotations:
    a9: "true"
    a10: x
    multi: |
        l1
        l2
devices:
    - name: common
      containerEdits:
        env:
            - A=
            - 'C=: x'
            - D=# x
            - |-
              F=a
              b
            - "a\tb=1"
            - é=ü
            - ' x=1'
            - 'x=1 '
            - H={a}
            - "\U0001F600=1"
    - name: "0"
      annotations:
        k: v
      containerEdits:
        deviceNodes:
            - path: /dev/x
              major: 3
              fileMode: 416
              permissions: rw
        hooks:
            - hookName: createContainer
              path: /bin/x
              args:
                - a
                - --b=c
              timeout: 5
        mounts:
            - hostPath: /a
              containerPath: /b
              options:
                - ro
                - bind
        additionalGids:
            - 1
            - 2
containerEdits:
    env:
        - X=1
)");
  EXPECT_EQ(write_json(minimal()),
            R"({"cdiVersion":"0.3.0","kind":"vendor.com/gpu","devices":[{"name":"one",)"
            R"("containerEdits":{"env":["A=1"]}}],"containerEdits":{}})");
}

TEST(CdiSpec, reads_back_what_it_wrote) {
  for (const char* value : {"", "yes", "1e3", "~", "- a", "a: b", "'x", "\n", " l1\nl2", "l1\n\n",
                            "x\r", "2001-01-01", "0x1f", "?", "<<", "\xff"}) {
    Spec spec = minimal();
    spec.version = "0.6.0";
    spec.annotations["key"] = value;
    const auto back = parse_spec(write_yaml(spec));
    ASSERT_TRUE(back.ok()) << value << ": " << back.error().message();
    const std::string expected = std::string_view(value) == "\xff" ? "\xEF\xBF\xBD" : value;
    EXPECT_EQ(back->annotations.at("key"), expected);
  }
}

TEST(CdiSpec, names_files) {
  EXPECT_EQ(spec_file_name("vendor.com", "gpu"), "vendor.com-gpu.yaml");
  EXPECT_EQ(spec_file_name("vendor.com", "gpu", "a/b"), "vendor.com-gpu_a_b.yaml");
}

TEST(CdiNames, parse) {
  const auto name = parse_qualified_name("k8s.gpu.example.com/gpu=5e99:a=b");
  EXPECT_FALSE(name.ok());
  const auto good = parse_qualified_name("k8s.gpu.example.com/gpu=5e99:a");
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->vendor, "k8s.gpu.example.com");
  EXPECT_EQ(good->class_name, "gpu");
  EXPECT_EQ(good->device, "5e99:a");
  for (const char* bad : {"", "/dev/x", "vendor=x", "vendor/=x", "/class=x", "vendor/class="}) {
    const auto parsed = parse_qualified_name(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_THAT(parsed.error().message(), HasSubstr("unqualified device"));
  }
}

// What the real example driver left in its CDI directory reads, is valid, declares the version that
// we would, and is written again as the same document.
TEST(CdiConformance, files_of_the_example_driver) {
  const auto path = dibs::test::conformance_data("drivers/dra-example-driver.json");
  if (path.empty()) GTEST_SKIP() << "no conformance data here";
  const auto all = json::parse(dibs::test::read_file(path));
  ASSERT_TRUE(all.ok());
  int files = 0;
  for (const auto& [example, record] : (*all)["examples"].members()) {
    for (const auto& [claim, by_name] : record["cdi"].members()) {
      for (const auto& [name, content] : by_name.members()) {
        const auto spec = spec_from_value(content);
        ASSERT_TRUE(spec.ok()) << spec.error().message();
        EXPECT_EQ(outcome(validate(*spec)), "");
        EXPECT_EQ(minimum_version(*spec), spec->version);
        const auto again = json::parse_yaml(write_yaml(*spec));
        ASSERT_TRUE(again.ok());
        EXPECT_EQ(*again, content);
        ++files;
      }
    }
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace dibs::cdi
