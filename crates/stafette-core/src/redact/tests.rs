mod inputs;

use super::*;

#[test]
fn b_17_what_a_workflow_injects_is_learned() {
    let workflow = "[workflow]\nname = \"w\"\nentry = \"one\"\n\
        [agents.one]\nrunner = \"exec\"\nresult = \"exit\"\ncommand = [\"true\"]\n\
        env = [\"DATABASE\", \"REGION\", \"MY_TOKEN\"]\n\
        [agents.two]\nrunner = \"a2a\"\nurl = \"http://127.0.0.1:1\"\nbearer = \"PEER\"\n\
        [[routes]]\nfrom = \"one\"\nto = \"two\"\n";
    let workflow = crate::workflow::file::parse(workflow).expect("a workflow");
    let redactor = Redactor::new();
    let clone = redactor.clone();
    redactor.learn_variables(workflow.variables(), |name| {
        let value = match name {
            "DATABASE" => "q8W7e6R5t4Z3u2I1",
            "REGION" => "eu-central-1",
            "MY_TOKEN" => "onlyletters",
            "PEER" => "justaword",
            _ => return None,
        };
        Some(value.to_owned())
    });
    let text = "q8W7e6R5t4Z3u2I1 eu-central-1 onlyletters justaword";
    let mark = "[redacted:environment]";
    assert_eq!(clone.text(text), format!("{mark} eu-central-1 {mark} {mark}"), "a clone knows it");
}
