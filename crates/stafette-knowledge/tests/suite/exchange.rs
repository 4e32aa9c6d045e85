//! Out of one graph and into another.

use stafette_knowledge::graph::{Cursor, Record, export, import};

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
async fn s1_12_an_export_goes_on_from_the_place_that_its_page_tells() {
    let (graph, _, _folder) = sqlite();
    told(&*graph).await;
    let whole = |all: &[Record]| {
        all.iter().filter(|one| matches!(one, Record::Node(_))).count() == 7 && all.len() == 14
    };
    for limit in [1, 3, 7, 1000] {
        let (mut all, mut next) = (Vec::new(), Some(String::new()));
        while let Some(place) = next {
            // As a text, which is how others keep it.
            let cursor: Cursor = place.parse().expect("a place");
            let page = graph.page(&cursor, limit).await.expect("a page");
            next = cursor.next(&page).map(|next| next.to_string());
            all.extend(page);
        }
        assert!(whole(&all), "{limit}: {all:?}");
    }
    for wrong in ["task:t1", "{}", "[1]", r#"["t1"]"#, r#"["task:a","EATS","task:b"]"#] {
        assert!(wrong.parse::<Cursor>().is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn s1_12_a_line_that_cannot_be_read_is_named() {
    let (graph, _, _folder) = sqlite();
    let text = "{\"stafette_graph\":1}\n{\"node\":{}}\n";
    let error = import(&*graph, &mut text.as_bytes()).await.expect_err("no node");
    assert!(error.to_string().starts_with("line 2: "), "{error}");
    let made = r#"{"by":"human","at":1}"#;
    let odd = format!(
        "{{\"stafette_graph\":1}}\n{{\"link\":{{\"from\":\"goal:a\",\"relation\":\"PART_OF\",\
         \"to\":\"goal:b\",\"made\":{made}}}}}\n"
    );
    let error = import(&*graph, &mut odd.as_bytes()).await.expect_err("no such link");
    assert!(error.to_string().contains("PART_OF cannot join goal:a and goal:b"), "{error}");
    let error = import(&*graph, &mut "hello\n".as_bytes()).await.expect_err("no export");
    assert_eq!(error.to_string(), "line 1: this is no export of a graph");
}
