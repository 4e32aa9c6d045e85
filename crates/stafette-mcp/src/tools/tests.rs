use super::*;

#[test]
fn b_11_every_tool_says_when_to_use_it_and_gives_an_example() {
    for tool in all() {
        assert!(tool.about.len() > 120, "{}: {}", tool.name, tool.about);
        assert!(tool.about.contains("Example:"), "{}", tool.name);
        assert!(tool.about.contains("Returns"), "{}", tool.name);
        assert_eq!(tool.input["type"], "object", "{}", tool.name);
        assert_eq!(tool.output["type"], "object", "{}", tool.name);
    }
}

#[test]
fn b_11_the_example_of_every_tool_fits_its_schema() {
    for tool in all() {
        let (_, example) = tool.about.rsplit_once("Example:").expect("an example");
        let example: Fields = serde_json::from_str(example.trim()).expect(tool.name);
        let known = tool.input["properties"].as_object().expect("properties");
        for name in example.keys() {
            assert!(known.contains_key(name), "{}: {name}", tool.name);
        }
        let required = tool.input.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            assert!(example.contains_key(name), "{}: {name}", tool.name);
        }
    }
}

#[test]
fn b_11_schemas_stand_for_themselves() {
    for tool in all() {
        for schema in [&tool.input, &tool.output] {
            let text = Value::Object(schema.clone()).to_string();
            assert!(!text.contains("$ref") && !text.contains("uint"), "{}: {text}", tool.name);
        }
        // A model needs a description of every argument.
        for (name, field) in tool.input["properties"].as_object().expect("properties") {
            assert!(field.get("description").is_some(), "{}: {name}", tool.name);
        }
    }
}
