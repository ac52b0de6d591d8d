// The page: buttons, the counts, and the report. The drawing is in timeline.js.
import { Timeline } from "/timeline.js";

const $ = (selector) => document.querySelector(selector);
const outcomes = ["fresh", "stale", "loaded", "waited", "unguarded", "degraded", "failed"];
const timeline = new Timeline($("#timeline"));

function row(cells) {
  const tr = document.createElement("tr");
  for (const cell of cells) {
    const td = document.createElement("td");
    td.textContent = typeof cell === "number" ? cell.toLocaleString("en") : cell;
    td.classList.toggle("zero", cell === 0);
    tr.append(td);
  }
  return tr;
}

const duration = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

function say(text, bad = false) {
  $("#status").textContent = text;
  $("#status").classList.toggle("bad", bad);
}

// request returns the response, or throws what the replica said.
async function request(path, options) {
  const response = await fetch(path, options);
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new Error(body.message ?? response.statusText);
}

async function burst(guard) {
  const first = $("#first");
  const query = new URLSearchParams({ guard, n: $("#n").value, first: first.value });
  say(`${$("#n").value} requests at the same time, guard ${guard} …`);
  const b = await (await request(`/burst?${query}`, { method: "POST" })).json();
  const answers = outcomes.filter((o) => b.answers[o]).map((o) => `${b.answers[o]} ${o}`).join(", ");
  $("#bursts").hidden = false;
  $("#bursts tbody").prepend(row([
    b.guard, first.selectedOptions[0].text, b.requests, b.database_runs, duration(b.median_ms), duration(b.slowest_ms), answers,
  ]));
  const runs = b.database_runs === 1 ? "once" : `${b.database_runs} times`;
  say(`Guard ${b.guard}: the database computed the report ${runs} for ${b.requests} requests.`);
}

async function ask() {
  const began = performance.now();
  const guard = $("#guard").checked ? "on" : "off";
  const response = await request(`/report?guard=${guard}`);
  const { regions } = await response.json();
  const orders = regions.reduce((sum, r) => sum + r.orders, 0).toLocaleString("en");
  const outcome = response.headers.get("X-Outcome");
  $("#asked").textContent = `${outcome}, ${duration(performance.now() - began)}, from ${orders} orders`;
  const money = (x) => x.toLocaleString("en", { maximumFractionDigits: 0 });
  $("#sales tbody").replaceChildren(...regions.map((r) =>
    row([r.name, r.orders, r.customers, money(r.revenue), `${(100 * r.share).toFixed(1)} %`])));
}

// button runs work on a click; meanwhile nothing else can be clicked.
function button(element, work) {
  element.addEventListener("click", async () => {
    const buttons = document.querySelectorAll("button");
    buttons.forEach((b) => (b.disabled = true));
    try {
      await work();
    } catch (error) {
      say(error.message, true);
    } finally {
      buttons.forEach((b) => (b.disabled = false));
    }
  });
}

function count(news) {
  $("#counts tbody").replaceChildren(...news.answers.map((answers, i) =>
    row([`Replica ${i + 1}`, news.runs[i], ...outcomes.map((o) => answers[o] ?? 0)])));
}

// follow asks for news for as long as the page is open.
async function follow() {
  for (let next = 0; ; ) {
    try {
      const news = await (await request(`/news?next=${next}`)).json();
      if (news.next < next) location.reload(); // the app was started again
      next = news.next;
      timeline.add(news);
      count(news);
    } catch {
      say("This replica does not answer. Is the app still running?", true);
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

for (const b of document.querySelectorAll("[data-burst]")) button(b, () => burst(b.dataset.burst));
for (const b of document.querySelectorAll("[data-post]")) {
  button(b, async () => {
    await request(b.dataset.post, { method: "POST" });
    say(`The report is ${b.dataset.post.slice(1)} now, for all replicas.`);
  });
}
for (const th of document.querySelectorAll("[data-what]")) th.style.setProperty("--dot", `var(--${th.dataset.what})`);
button($("#ask"), ask);
follow();
ask().catch((error) => say(error.message, true));
