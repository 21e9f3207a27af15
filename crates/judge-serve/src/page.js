// Makes a request of the fields, shows it as a curl command, and shows its answer. Texts are put in as texts, never as markup.
"use strict";

const at = (id) => document.getElementById(id);
const make = (name, text, kind) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
};

const ROUTE = "/v1/systemone?label_mass=true";
const HINTS = {
  choice: "An option a line; what it means may follow behind a colon.",
  score: "A level a line, from the lowest to the highest.",
  noul: "Answered by the probability of yes.",
};
const lines = (text) => text.split("\n").map((line) => line.trim()).filter((line) => line !== "");

// Names that appear twice are sent as they are: the service says what is wrong with them.
const object = (entries, between = ", ") => entries.map(([name, json]) => `${JSON.stringify(name)}: ${json}`).join(between);
const option = (line) => {
  const [, name, about] = line.match(/^(.+?)\s*:\s+(.+)$/) ?? [null, line, null];
  return [name, JSON.stringify(about)];
};
const question = (fields) => {
  const { name, type, instructions, options } = read(fields);
  const parts = [["type", JSON.stringify(type)]];
  if (instructions !== "") parts.push(["instructions", JSON.stringify(instructions)]);
  if (type === "choice") parts.push(["criteria", `{${object(lines(options).map(option))}}`]);
  if (type === "score") parts.push(["criteria", `[${lines(options).map((line) => JSON.stringify(line)).join(", ")}]`]);
  return [name, `{${object(parts)}}`];
};
const read = (fields) => Object.fromEntries(
  ["name", "type", "instructions", "options"].map((part) => [part, fields.querySelector(`.${part}`).value.trim()]));

// A state that is a JSON object or a list goes as it is written, so that whole numbers of any size keep their digits.
const isJson = (text) => {
  try {
    return typeof JSON.parse(text) === "object" && JSON.parse(text) !== null;
  } catch {
    return false;
  }
};
const body = () => {
  const state = at("state").value;
  const parts = [["state", isJson(state) ? state.trim() : JSON.stringify(state)]];
  if (at("model").selectedIndex > 0) parts.unshift(["model", JSON.stringify(at("model").value)]);
  const asked = [...at("questions").children].map(question);
  parts.push(["questions", `{\n    ${object(asked, ",\n    ")}\n  }`]);
  return `{\n  ${object(parts, ",\n  ")}\n}`;
};
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const curl = () => {
  const key = at("key") ? ' -H "Authorization: Bearer $KEY"' : "";
  return `curl -s ${quoted(location.origin + ROUTE)}${key} -d ${quoted(body())}`;
};
const show = () => {
  at("kind").textContent = isJson(at("state").value) ? "Sent as JSON." : "Sent as text; a JSON object or a list is sent as such.";
  for (const fields of at("questions").children) {
    const { type } = read(fields);
    fields.querySelector(".hint").textContent = HINTS[type];
    fields.querySelector(".options").hidden = type === "noul";
  }
  at("curl").textContent = curl();
};

const add = ({ name = "", type = "choice", instructions = "", options = "" } = {}) => {
  const fields = at("question").content.firstElementChild.cloneNode(true);
  for (const [part, value] of Object.entries({ name, type, instructions, options })) fields.querySelector(`.${part}`).value = value;
  fields.querySelector(".remove").addEventListener("click", () => {
    fields.remove();
    show();
  });
  at("questions").append(fields);
  return fields;
};

const headers = () => (at("key")?.value ? { Authorization: `Bearer ${at("key").value.trim()}` } : {});

// Judges with names of their own answer one question each, about the fields of a state.
let judges = [];
const list = async () => {
  const reply = await fetch("/v1/models", { headers: headers() }).catch(() => null);
  if (!reply?.ok) return;
  judges = (await reply.json()).data;
  at("model").replaceChildren(...judges.map(({ id }) => make("option", id)));
  at("judges").hidden = judges.length < 2;
};
const choose = () => {
  const judge = judges[at("model").selectedIndex]?.judge;
  if (judge) {
    const fields = Object.fromEntries(judge.fields.map((field) => [field, ""]));
    if (!isJson(at("state").value)) at("state").value = JSON.stringify(fields, null, 2);
    at("questions").replaceChildren();
    const options = (judge.question.labels ?? []).join("\n");
    add({ name: "grade", type: judge.question.type, options });
  }
  show();
};

const percent = (share) => (share > 0 && share < 0.0001 ? "< 0.01 %" : `${(100 * share).toFixed(share < 0.1 ? 2 : 1)} %`);
const bars = (shares, kind = "") => {
  const made = make("dl", undefined, `bars ${kind}`);
  for (const [name, share] of shares) {
    const bar = make("progress");
    bar.value = share;
    made.append(make("dt", name), bar, make("dd", percent(share)));
  }
  return made;
};
const result = (answer) => {
  if (answer.type === "choice") return answer.choice;
  if (answer.type === "score") return `${answer.score.toFixed(2)} (0 to ${Object.keys(answer.legend).length - 1})`;
  return answer.noul < 0.5 ? "no" : "yes";
};
const shares = (answer) => {
  if (answer.type === "noul") return [["yes", answer.noul], ["no", 1 - answer.noul]];
  const name = (option) => (answer.type === "score" ? `${option} ${answer.legend[option]}` : option);
  return Object.entries(answer.probabilities).map(([option, share]) => [name(option), share]);
};
const told = (name, answer, said) => {
  const made = make("article", undefined, "answered");
  made.append(make("h3", name), make("p", result(answer), "result"), bars(shares(answer)));
  const mass = said.label_mass?.[name];
  if (typeof mass === "number") {
    made.append(bars([["label mass", mass]], "mass"));
    if (mass < 0.5) {
      made.append(make("p", "Most of the model's probability is on none of these options: it would rather say something else.", "notice"));
    }
  }
  const calibrated = said.calibrated?.[name];
  if (calibrated) {
    const { value, low, high, level } = calibrated;
    const words = `People would say ${value.toFixed(2)}, ${low.toFixed(2)} to ${high.toFixed(2)} in ${percent(level)} of cases.`;
    made.append(make("p", words, "quiet"));
  }
  const criteria = said.criteria?.[name];
  if (criteria) made.append(make("h3", "Criteria"), bars(Object.entries(criteria)));
  return made;
};
const refused = (status, said) => {
  const problem = ({ loc, msg }) => `${loc.slice(1).join(" › ")}: ${msg}`;
  const detail = said?.detail ?? said?.error?.message ?? "no answer";
  const notice = make("p", `${status}: ${Array.isArray(detail) ? detail.map(problem).join("\n") : detail}`, "notice");
  notice.setAttribute("role", "alert");
  return notice;
};

const ask = async () => {
  const started = performance.now();
  at("submit").disabled = true;
  at("answers").setAttribute("aria-busy", "true");
  try {
    const json = { "Content-Type": "application/json", ...headers() };
    const reply = await fetch(ROUTE, { method: "POST", headers: json, body: body() });
    const said = await reply.json().catch(() => null);
    if (reply.ok) {
      const took = `${said.usage.input_tokens} tokens read in ${Math.round(performance.now() - started)} ms by ${said.model}`;
      const answers = Object.entries(said.answers).map(([name, answer]) => told(name, answer, said));
      at("answers").replaceChildren(...answers, make("p", took, "quiet"));
    } else {
      at("answers").replaceChildren(refused(reply.status, said));
      if (reply.status === 401) at("key")?.focus();
    }
  } catch {
    at("answers").replaceChildren(refused("No answer", { detail: "the service may have stopped" }));
  }
  at("submit").disabled = false;
  at("answers").scrollIntoView({ block: "nearest" });
  at("answers").removeAttribute("aria-busy");
};

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("ask").requestSubmit();
});
at("ask").addEventListener("input", show);
at("model").addEventListener("change", choose);
at("key")?.addEventListener("change", list);
at("add").addEventListener("click", () => {
  add().querySelector(".name").focus();
  show();
});
at("copy").addEventListener("click", async () => {
  getSelection().selectAllChildren(at("curl"));
  const copied = await navigator.clipboard?.writeText(at("curl").textContent).then(() => true, () => false);
  at("copy").textContent = copied ? "Copied" : "Selected";
});

add({ name: "tone", instructions: "What is the tone?", options: "calm\nangry: Accuses or shouts\njoking" });
add({ name: "urgency", type: "score", instructions: "How urgent is it?", options: "can wait\nthis week\ntoday" });
show();
list();
