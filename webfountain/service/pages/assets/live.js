// What a page does where scripts are on: local times, live figures, parts that are loaded again. No page needs it.
"use strict";

const grouped = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
const total = (items, key) => items.reduce((sum, each) => sum + each[key], 0);

function localTimes(root) {
  if (Intl.DateTimeFormat().resolvedOptions().timeZone === "UTC") return;
  // The Swedish form is that of ISO 8601, as the times in UTC have it.
  const form = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "short" });
  for (const each of root.querySelectorAll("time[datetime]")) {
    if (each.querySelector(".local")) continue;
    const local = document.createElement("span");
    local.className = "local";
    local.textContent = ` (${form.format(new Date(each.dateTime))} here)`;
    each.append(local);
  }
}

function showFigures(items) {
  const figures = {
    fetched: () => grouped(total(items, "fetched")),
    in_flight: () => grouped(total(items, "in_flight")),
    rate: () => total(items, "pages_per_second").toFixed(1),
    limit: () => items[0].limit,
    sites: () => grouped(items[0].sites),
    held: () => grouped(items[0].pages.crawled ?? 0),
    waiting: () => grouped(items[0].pages["never-crawled"] ?? 0),
    known: () => grouped(Object.values(items[0].pages).reduce((a, b) => a + b, 0)),
  };
  for (const each of document.querySelectorAll("[data-figure]")) {
    const figure = figures[each.dataset.figure];
    if (figure) each.textContent = figure();
  }
}

function followLive(address) {
  const source = new EventSource(address);
  source.addEventListener("live", (event) => {
    const alive = JSON.parse(event.data).items.filter((each) => Date.now() / 1000 - each.at < 30);
    if (alive.length) showFigures(alive);
  });
  return source;
}

function followNews(place) {
  const source = new EventSource(place.dataset.news);
  let many = 0;
  const count = () => {
    many += 1;
    place.hidden = false;
    place.replaceChildren();
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = many === 1 ? "1 new entry" : `${many} new entries`;
    place.append(link);
  };
  for (const verdict of ["new", "changed", "minor", "returned", "gone", "redirected", "refused", "duplicate", "forgotten", "evicted"]) {
    source.addEventListener(verdict, count);
  }
  return source;
}

async function loadAgain(part) {
  if (document.hidden || part.contains(document.activeElement) || part.querySelector("details[open]")) return;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
    if (!found) return;
    part.replaceChildren(...found.childNodes);
    localTimes(part);
  } catch {
    // the service is away; the next turn tries again
  }
}

localTimes(document);
const sources = [];
const begin = () => {
  if (document.body.dataset.live && document.querySelector("[data-figure]")) sources.push(followLive(document.body.dataset.live));
  const news = document.querySelector("[data-news]");
  if (news) sources.push(followNews(news));
};
begin();
addEventListener("pagehide", () => sources.splice(0).forEach((each) => each.close()));
addEventListener("pageshow", (event) => event.persisted && begin());
const moving = document.getElementById("moving");
if (moving) setInterval(() => loadAgain(moving), Number(moving.dataset.refresh) * 1000);
