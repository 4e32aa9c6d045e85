//! Out of one graph and into another.

use stafette_knowledge::graph::{export, import};

use crate::story::{sqlite, told};

#[tokio::test]
async fn s1_12_an_export_read_by_another_graph_is_the_same_graph() {
    let (one, _, _folder) = sqlite();
    told(&*one).await;
    let mut first = Vec::new();
    let out = export(&*one, &mut first).await.expect("written");
    assert_eq!((out.nodes, out.links), (7, 7));

    let (other, _, _folder) = sqlite();
    for _ in 0..2 {
        let done = import(&*other, &mut &first[..]).await.expect("read");
        assert_eq!(done, out, "a second time changes nothing");
    }
    let mut second = Vec::new();
    export(&*other, &mut second).await.expect("written");
    assert_eq!(String::from_utf8(first), String::from_utf8(second));
}

#[tokio::test]
async fn s1_12_a_line_that_cannot_be_read_is_named() {
    let (graph, _, _folder) = sqlite();
    let text = "{\"stafette_graph\":1}\n{\"node\":{}}\n";
    let error = import(&*graph, &mut text.as_bytes()).await.expect_err("no node");
    assert!(error.to_string().starts_with("line 2: "), "{error}");
    let error = import(&*graph, &mut "hello\n".as_bytes()).await.expect_err("no export");
    assert_eq!(error.to_string(), "line 1: this is no export of a graph");
}
