// Shows /openapi.json to people. All text is set as text: nothing of the description is ever HTML.
const METHODS = ["get", "post", "put", "patch", "delete"];

function node(name, props = {}, ...children) {
  const made = Object.assign(document.createElement(name), props);
  made.append(...children);
  return made;
}

function schemaOf(api, schema) {
  const name = schema?.$ref?.split("/").pop();
  return name ? { name, schema: api.components.schemas[name] } : { name: "", schema };
}

function typeOf(api, schema) {
  if (!schema || schema === true) return "anything";
  if (schema.$ref) return schema.$ref.split("/").pop();
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return several.map((one) => typeOf(api, one)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((word) => JSON.stringify(word)).join(" | ");
  const kind = Array.isArray(schema.type) ? schema.type.join(" | ") : (schema.type ?? "anything");
  return schema.items ? `list of ${typeOf(api, schema.items)}` : kind;
}

function fields(api, schema) {
  const found = schemaOf(api, schema).schema;
  const required = new Set(found?.required ?? []);
  const rows = Object.entries(found?.properties ?? {}).map(([name, field]) =>
    node("tr", {},
      node("td", {}, node("code", { textContent: name }), required.has(name) ? " *" : ""),
      node("td", { className: "quiet", textContent: typeOf(api, field) }),
      node("td", { textContent: field.description ?? "" })));
  return rows.length ? node("table", {}, ...rows) : node("p", { className: "quiet", textContent: typeOf(api, schema) });
}

function operation(api, path, method, op) {
  const part = node("section", { className: "operation", id: op.operationId });
  part.append(
    node("h3", { textContent: op.summary ?? op.operationId }),
    node("p", {}, node("span", { className: "method", textContent: method.toUpperCase() }), node("code", { textContent: path })));
  if (op.description) part.append(node("p", { textContent: op.description }));
  if (op.parameters?.length) {
    const rows = op.parameters.map((given) =>
      node("tr", {},
        node("td", {}, node("code", { textContent: given.name }), given.required ? " *" : ""),
        node("td", { className: "quiet", textContent: `${given.in}: ${typeOf(api, given.schema)}` }),
        node("td", { textContent: given.description ?? given.schema?.description ?? "" })));
    part.append(node("h4", { textContent: "Parameters" }), node("table", {}, ...rows));
  }
  const body = op.requestBody?.content?.["application/json"]?.schema;
  if (body) part.append(node("h4", { textContent: "Body" }), fields(api, body));
  for (const [status, answer] of Object.entries(op.responses ?? {})) {
    if (status === "default") continue;
    part.append(node("h4", { textContent: `Answer ${status}` }));
    if (answer.description) part.append(node("p", { textContent: answer.description }));
    const schema = answer.content?.["application/json"]?.schema;
    if (schema) part.append(fields(api, schema.items ?? schema));
  }
  return part;
}

function show(api) {
  const page = document.getElementById("page");
  const contents = document.getElementById("contents");
  page.replaceChildren(
    node("h1", { textContent: `${api.info.title} API` }),
    node("p", { className: "quiet", textContent: `Version ${api.info.version}, OpenAPI ${api.openapi}. ` },
      node("a", { href: "/openapi.json", textContent: "openapi.json" })),
    node("p", { textContent: api.info.description }));
  for (const tag of api.tags) {
    const list = node("ul");
    contents.append(node("strong", { textContent: tag.name }), list);
    page.append(node("h2", { textContent: tag.name }), node("p", { textContent: tag.description }));
    for (const [path, item] of Object.entries(api.paths)) {
      for (const method of METHODS.filter((method) => item[method]?.tags?.includes(tag.name))) {
        const op = item[method];
        list.append(node("li", {}, node("a", { href: `#${op.operationId}`, textContent: op.summary ?? op.operationId })));
        page.append(operation(api, path, method, op));
      }
    }
  }
  page.append(node("h2", { textContent: "Types" }));
  for (const [name, schema] of Object.entries(api.components.schemas)) {
    const part = node("section", { className: "operation", id: `type-${name}` }, node("h3", { textContent: name }));
    if (schema.description) part.append(node("p", { textContent: schema.description }));
    part.append(fields(api, schema));
    page.append(part);
  }
}

const answer = await fetch("/openapi.json");
show(await answer.json());
