// The page: reads /api/messages whenever /api/events says so, and draws one card per alert, newest first.
// Text reaches the page as text only, never as markup.
"use strict";

const LATE_HEARTBEAT_SECONDS = 300;
const LINKS = [["runbook_url", "Runbook"], ["runbook", "Runbook"], ["dashboard_url", "Board"], ["dashboard", "Board"], ["silence_url", "Silence"]];
const TOLD = new Set(["summary", "description", ...LINKS.map(([key]) => key)]);

let messages = [];
let shown = "all";
let seen = null;

const byId = (id) => document.getElementById(id);

function element(name, className, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

const seconds = (text) => Date.parse(text) / 1000;

function clock(unix) {
  const moment = new Date(unix * 1000);
  const time = moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const today = moment.toDateString() === new Date().toDateString();
  return today ? time : `${moment.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
}

// One alert per receiver, fingerprint and start: its firing and its resolved message belong together.
function alerts() {
  const joined = new Map();
  for (const message of messages) {
    if (message.receiver === "heartbeat") continue;
    const key = JSON.stringify([message.receiver, message.fingerprint, message.starts_at, message.group_key]);
    const alert = joined.get(key) ?? { key, latest: message };
    alert[message.status] = message;
    joined.set(key, alert);
  }
  return [...joined.values()].sort((a, b) => b.latest.received_at - a.latest.received_at);
}

function safeLink(address) {
  try {
    const url = new URL(address);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}

function linksOf(annotations) {
  const row = element("div", "links");
  const used = new Set();
  for (const [key, title] of LINKS) {
    const href = annotations[key] && safeLink(annotations[key]);
    if (!href || used.has(title)) continue;
    used.add(title);
    const link = element("a", "", title);
    link.href = href;
    link.target = "_blank";
    link.rel = "noopener noreferrer";
    row.append(link);
  }
  return row.childElementCount ? row : null;
}

function courseOf(alert) {
  const course = element("p", "course");
  const first = alert.firing ?? alert.resolved;
  const began = seconds(first.starts_at);
  if (alert.resolved) {
    course.append(element("strong", "", "Resolved"), ` after ${span(seconds(alert.resolved.ends_at) - began)}`);
    course.append(` · began ${clock(began)}`);
  } else {
    const lasting = element("span", "lasting", span(Date.now() / 1000 - began));
    lasting.dataset.since = String(began);
    course.append("For ", lasting, ` · began ${clock(began)}`);
  }
  return course;
}

function detailsOf(message) {
  const details = element("details");
  const list = element("dl");
  const rest = Object.entries(message.annotations).filter(([key]) => !TOLD.has(key));
  for (const [key, value] of [...Object.entries(message.labels), ...rest]) list.append(element("dt", "", key), element("dd", "", value));
  details.append(element("summary", "", "Labels"), list);
  return details;
}

function card(alert) {
  const { latest } = alert;
  const node = element("article");
  node.dataset.receiver = latest.receiver;
  node.dataset.status = alert.resolved ? "resolved" : "firing";
  node.dataset.alertname = latest.alertname;
  node.dataset.key = alert.key;
  const top = element("div", "top");
  top.append(element("span", `badge ${node.dataset.status}`, alert.resolved ? "✓ Resolved" : "● Firing"));
  top.append(element("span", "kind", latest.receiver === "page" ? "Page" : "Ticket"));
  const when = element("time", "when", clock(latest.received_at));
  when.dateTime = new Date(latest.received_at * 1000).toISOString();
  top.append(when);
  node.append(top, element("h2", "", latest.annotations.summary || latest.alertname), element("p", "name", latest.alertname));
  if (latest.annotations.description) node.append(element("p", "description", latest.annotations.description));
  node.append(courseOf(alert));
  const links = linksOf(latest.annotations);
  if (links) node.append(links);
  node.append(detailsOf(latest));
  return node;
}

function draw() {
  const all = alerts();
  const open = new Set([...document.querySelectorAll("article:has(details[open])")].map((node) => node.dataset.key));
  const cards = all.filter((alert) => shown === "all" || alert.latest.receiver === shown).map(card);
  for (const node of cards) {
    if (open.has(node.dataset.key)) node.querySelector("details").open = true;
    if (seen && !seen.has(node.dataset.key + node.dataset.status)) node.classList.add("fresh");
  }
  seen = new Set(all.map((alert) => alert.key + (alert.resolved ? "resolved" : "firing")));
  byId("messages").replaceChildren(...cards);
  byId("empty").hidden = cards.length > 0;
  byId("empty").textContent = shown === "ticket" ? "No tickets." : "Nothing has paged.";
  tellNow(all);
  tick();
}

function tellNow(all) {
  const firing = (receiver) => all.filter((alert) => alert.latest.receiver === receiver && !alert.resolved).length;
  const pages = firing("page");
  const tickets = firing("ticket");
  const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  const parts = [pages && count(pages, "page"), tickets && count(tickets, "ticket")].filter(Boolean);
  byId("now").textContent = parts.length ? `${parts.join(" and ")} firing` : "All quiet";
  byId("now").dataset.state = pages ? "page" : tickets ? "ticket" : "quiet";
  document.title = pages ? `(${pages}) On call` : "On call";
}

function tick() {
  const now = Date.now() / 1000;
  for (const node of document.querySelectorAll(".lasting")) node.textContent = span(now - Number(node.dataset.since));
  const beat = messages.find((message) => message.receiver === "heartbeat");
  const line = byId("heartbeat");
  const age = beat ? now - beat.received_at : null;
  line.textContent = beat ? `Last heartbeat ${span(age)} ago` : "No heartbeat yet.";
  line.dataset.state = age === null ? "none" : age > LATE_HEARTBEAT_SECONDS ? "late" : "well";
}

async function refresh() {
  const answer = await fetch("/api/messages");
  if (!answer.ok) return;
  messages = await answer.json();
  draw();
}

function live(yes) {
  byId("connection").dataset.live = yes ? "yes" : "no";
  byId("connection").textContent = yes ? "live" : "not connected";
}

const events = new EventSource("/api/events");
events.onmessage = () => { live(true); refresh().catch(() => live(false)); };
events.onerror = () => live(false);

for (const button of document.querySelectorAll("nav button")) {
  button.addEventListener("click", () => {
    shown = button.dataset.filter;
    for (const other of document.querySelectorAll("nav button")) other.setAttribute("aria-pressed", String(other === button));
    draw();
  });
}
setInterval(tick, 1000);
