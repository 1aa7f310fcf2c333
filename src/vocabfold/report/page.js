"use strict";
// Everything from data enters the page as text (textContent), never as markup.
(() => {
  const { summary, plots } = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const whole = (x) => (x == null ? "–" : Math.round(x).toLocaleString("en-US"));
  const number = (x) => {
    if (x == null) return "–";
    const short = Number(x.toPrecision(3));
    if (Math.abs(x) >= 999.5) return whole(x);
    return short && Math.abs(short) < 1e-4 ? short.toExponential() : String(short);
  };
  const ids = (n) => `${whole(n)} id${n === 1 ? "" : "s"}`;
  const percent = (x) => {
    if (x == null) return "–";
    if (x >= 1 || x <= 0) return `${Number((100 * x).toPrecision(3))} %`;
    if (x < 0.01) return `${Number((100 * x).toPrecision(2))} %`;
    return x < 0.999 ? `${(100 * x).toFixed(1)} %` : x < 0.99999 ? `${(100 * x).toFixed(3)} %` : "nearly 100 %";
  };
  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text != null) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const named = (text) => {
    const cell = element("th", null, { scope: "row", "data-value": text });
    cell.append(element("bdi", text));
    return cell;
  };
  const rate = (x) => (x == null ? "–" : `${x > 0 && x < 0.01 ? Number((100 * x).toPrecision(3)) : (100 * x).toFixed(2)} %`);
  const words = (text) => element("td", text, { class: "text", "data-value": text, dir: "auto" });
  const cell = (value, text) => element("td", text, { "data-value": value ?? "" });

  // Tables: a click on a head sorts, a second click reverses the order.
  const sort = (table, column, ascending) => {
    const rows = [...table.tBodies[0].rows];
    const value = (row) => row.cells[column].dataset.value;
    const isNumber = rows.every((row) => value(row) === "" || !Number.isNaN(Number(value(row))));
    const compare = isNumber
      ? (a, b) => (a === "" ? -Infinity : Number(a)) - (b === "" ? -Infinity : Number(b)) || 0
      : (a, b) => a.localeCompare(b, "en", { numeric: true });
    rows.sort((a, b) => (ascending ? 1 : -1) * compare(value(a), value(b)));
    table.tBodies[0].append(...rows);
  };
  const sortAgain = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    const column = heads.findIndex((head) => head.getAttribute("aria-sort") !== "none");
    if (column >= 0) sort(table, column, heads[column].getAttribute("aria-sort") === "ascending");
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.firstElementChild.addEventListener("click", () => {
        const isText = table.tBodies[0].rows[0]?.cells[column].tagName === "TH";
        const now = head.getAttribute("aria-sort");
        const ascending = now === "none" ? isText : now === "descending";
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sort(table, column, ascending);
      });
    });
  }

  // Plots. Expressions are interpreted (ast), so that the policy need not allow compiling code.
  const views = {};
  const drawn = Object.entries(plots).map(async ([name, spec]) => {
    const place = byId(`plot-${name}`);
    if (!place) return;
    if (place.clientWidth < 520) spec.config.legend.columns = 1;
    const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true };
    views[name] = (await vegaEmbed(place, spec, options)).view;
  });
  const exchange = (name, data) => {
    const view = views[name];
    if (!view) return;
    for (const [key, rows] of Object.entries(data)) view.data(key, rows);
    view.runAsync();
  };

  // 2. The slider over budgets.
  const budgets = summary.budgets;
  let step = budgets ? budgets.chosen : 0;
  const showStep = () => {
    const at = (i) => ({
      budget: budgets.budget[i], size: budgets.size[i], information: budgets.information[i],
      gain: budgets.gain[i], held_out: budgets.held_out[i],
    });
    const [half, double] = [budgets.half[step], budgets.double[step]];
    const now = at(step);
    byId("slider").value = step;
    byId("slider").setAttribute("aria-valuetext", ids(now.budget));
    byId("slider-budget").textContent = ids(now.budget);
    byId("go-half").disabled = half == null;
    byId("go-double").disabled = double == null;
    const facts = ["gain", "held_out"].filter((fact) => budgets[fact][0] != null);
    const rows = [["half", half], ["this", step], ["double", double]].filter(([, i]) => i != null).map(([name, i]) => {
      const figures = at(i);
      const row = element("tr", null, name === "this" ? { class: "now" } : {});
      row.append(named(name), cell(figures.budget, whole(figures.budget)), cell(figures.size, whole(figures.size)));
      row.append(cell(figures.information, number(figures.information)));
      const kept = budgets.total ? figures.information / budgets.total : 1;
      row.append(cell(kept, percent(kept)));
      row.append(...facts.map((fact) => cell(figures[fact], number(figures[fact]))));
      return row;
    });
    byId("steps").tBodies[0].replaceChildren(...rows);
    byId("advice").textContent = advice(now, half, double);
    const budget = budgets.is_auto && step === budgets.chosen ? "auto" : String(now.budget);
    byId("command").textContent = summary.about.commands.fit.replace("BUDGET", budget);
    const table = byId("step-columns");
    table.tBodies[0].replaceChildren(...budgets.columns.map((column, c) => {
      const row = element("tr");
      const nats = column.information[step];
      row.append(named(summary.columns[c].name), cell(column.size[step], whole(column.size[step])));
      row.append(cell(column.n_dedicated[step], whole(column.n_dedicated[step])), cell(nats, number(nats)));
      row.append(...facts.map((fact) => cell(column[fact][step], number(column[fact][step]))));
      const other = (i, sign) => {
        const change = i == null ? null : sign * (column.information[i] - nats);
        return [cell(i == null ? null : column.size[i], whole(i == null ? null : column.size[i])), cell(change, number(change))];
      };
      row.append(...other(half, -1), ...other(double, 1));
      return row;
    }));
    sortAgain(table);
    exchange("budgets", { at: [{ budget: now.budget }] });
  };
  const advice = (now, half, double) => {
    const by = budgets.by;
    const name = { held_out: "test gain", gain: "CV gain", information: "train MI" }[by];
    const best = budgets.level[budgets.best];
    const change = (i) => {
      const more = budgets[by][i] - now[by];
      if (more === 0) return `does not change the ${name}`;
      const share = best > 0 ? ` (${percent(Math.abs(more) / best)} of the best)` : "";
      return `${more < 0 ? "lowers" : "raises"} the ${name} by ${number(Math.abs(more))} nats/row${share}`;
    };
    const parts = [];
    if (half != null) parts.push(`halving ${change(half)}`);
    if (double != null) parts.push(`doubling ${change(double)}`);
    return parts.length ? `From ${ids(now.budget)}, ${parts.join("; ")}.` : "";
  };
  if (budgets) {
    const go = (i) => { if (i != null) { step = Number(i); showStep(); } };
    byId("slider").addEventListener("input", (event) => go(event.target.value));
    byId("go-half").addEventListener("click", () => go(budgets.half[step]));
    byId("go-double").addEventListener("click", () => go(budgets.double[step]));
    for (const button of document.querySelectorAll("button[data-step]")) button.addEventListener("click", () => go(button.dataset.step));
    showStep();
  }

  // 4. The ids of a column.
  const roles = {
    rates: "values of similar rates (shared)", value: "one value (dedicated)", other: "rare and unseen values (other)",
    rest: "all values without a dedicated id", joined: "one value, and all without a dedicated id", hash: "values with the same hash", several: "several ids, drawn as one",
  };
  let column = null;
  let strips = [];
  let segment = 0;
  const idName = (i) => {
    const { id, last, n_ids } = column.segments;
    return n_ids[i] === 1 ? String(id[i]) : `${whole(n_ids[i])} ids from ${id[i]} to ${last[i]}`;
  };
  const strip = () => {
    const { rows, rate, n_values } = column.segments;
    const total = rows.reduce((a, b) => a + b, 0) || 1;
    let end = 0;
    return rows.map((n, i) => {
      const start = end;
      end += n / total;
      return { i, name: idName(i), start, end, rate: rate[i], rows: n, values: n_values[i] };
    });
  };
  const showSegment = (i, value = null) => {
    segment = Number(i);
    const s = column.segments;
    const facts = [["Id", idName(segment)], ["Stands for", roles[s.role[segment]]]];
    const isOther = s.n_ids[segment] === 1 && s.id[segment] === column.other;
    if (isOther && !column.is_refused && s.role[segment] !== "other") facts.push(["Also for", `${column.n_rare ? "rare and " : ""}unseen values (other)`]);
    if (isOther && column.n_rare) facts.push(["Rare values", `${whole(column.n_rare)}, with fewer than ${whole(summary.about.settings.min_count)} rows each`]);
    if (value != null) {
      const v = column.values;
      facts.unshift(["Value", [`${v.text[value]}`]], ["Its rows", `${whole(v.rows[value])}, ${rate(v.rate[value])} of them positive`]);
    }
    facts.push(["Training rows", `${whole(s.rows[segment])} (${percent(s.rows[segment] / summary.about.rows)})`]);
    if (s.observed[segment] != null) facts.push(["Positive", `${rate(s.observed[segment])} of them; 95 % interval ${rate(s.low[segment])} to ${rate(s.high[segment])}`]);
    facts.push(["Rate of the id", `${rate(s.rate[segment])}${summary.about.settings.smoothing ? " after smoothing: the rates of infrequent values are shrunk towards the mean of the column" : ""}`]);
    if (s.from[segment] != null) facts.push(["Interval", `values whose ${summary.about.settings.smoothing ? "smoothed " : ""}rate is from ${rate(s.from[segment])} to ${rate(s.to[segment])}`]);
    if (s.role[segment] !== "other") facts.push(["Values", whole(s.n_values[segment])]);
    if (s.examples[segment].length) facts.push(["Most frequent", s.examples[segment]]);
    byId("id-facts").replaceChildren(...facts.flatMap(([name, text]) => {
      const value = element("dd");
      if (Array.isArray(text)) text.forEach((one, k) => value.append(k ? ", " : "", element("bdi", one)));
      else value.textContent = text;
      return [element("dt", name), value];
    }));
    byId("segment").value = segment;
    byId("segment").setAttribute("aria-valuetext", `id ${idName(segment)}`);
    exchange("strip", { picked: [strips[segment]] });
  };
  const showColumn = (i) => {
    column = summary.ids[i];
    const s = column.segments;
    const n = s.rows.length;
    byId("segment").max = n - 1;
    const most = s.rows.indexOf(Math.max(...s.rows));
    strips = strip();
    byId("strip-title").textContent = `${column.name}: ${ids(column.size)}, with rates from ${percent(Math.min(...s.rate))} to ${percent(Math.max(...s.rate))}`;
    const v = column.values;
    const notes = [];
    if (n < column.size) notes.push(`${whole(column.size)} ids are drawn as ${whole(n)} groups of neighbours by rate, each with about as many rows.`);
    notes.push(v.text.length < v.of
      ? `The search finds the ${whole(v.text.length)} most frequent of ${whole(v.of)} values (${percent(v.share_of_rows)} of the rows). For the others: vocabfold inspect BOOK --feature COLUMN --value VALUE.`
      : `The search finds all ${whole(v.of)} values of the codebook.`);
    byId("strip-note").textContent = notes.join(" ");
    byId("segments").tBodies[0].replaceChildren(...s.rows.map((rows, k) => {
      const row = element("tr");
      row.append(cell(s.id[k], idName(k)), words(roles[s.role[k]]), cell(rows, whole(rows)));
      for (const fact of ["rate", "observed", "low", "high"]) row.append(cell(s[fact][k], rate(s[fact][k])));
      row.append(cell(s.n_values[k], whole(s.n_values[k])), words(s.examples[k].join(", ")));
      return row;
    }));
    sortAgain(byId("segments"));
    exchange("strip", { strip: strips });
    showSegment(most);
    find();
  };
  // Long values are cut in the page, so the search text is cut in the same way.
  const cut = (text) => {
    const all = [...text];
    return all.length <= 60 ? text : `${all.slice(0, 40).join("")}…${all.slice(-19).join("")}`;
  };
  const isSame = (text, wanted) => {
    if (text === wanted || text === wanted.trim()) return true;
    if (column.kind === "boolean") return text.toLowerCase() === wanted.trim().toLowerCase();
    return ["float", "integer", "unsigned"].includes(column.kind) && wanted.trim() !== "" && Number(text) === Number(wanted);
  };
  const find = () => {
    const wanted = cut(byId("find").value);
    const list = byId("found");
    list.replaceChildren();
    if (!wanted) return;
    const { text, id, segment: places, rows, special, of } = column.values;
    const lower = wanted.trim().toLowerCase();
    const exact = [], begins = [], holds = [];
    text.forEach((one, k) => {
      if (isSame(one, wanted)) exact.push(k);
      else if (one.toLowerCase().startsWith(lower)) begins.push(k);
      else if (one.toLowerCase().includes(lower)) holds.push(k);
    });
    const found = [...exact, ...begins, ...holds];
    for (const k of found.slice(0, 8)) {
      const button = element("button", null, { type: "button" });
      button.append(element(special.includes(k) ? "i" : "bdi", text[k]), `: id ${id[k]}, ${whole(rows[k])} rows`);
      button.addEventListener("click", () => showSegment(places[k], k));
      const item = element("li");
      item.append(button);
      list.append(item);
    }
    if (found.length > 8) list.append(element("li", `and ${whole(found.length - 8)} more that contain it`));
    if (exact.length > 1) list.append(element("li", `${whole(exact.length)} values look like this one, because long ones are cut here. Use vocabfold inspect to distinguish them.`));
    if (exact.length === 1) showSegment(places[exact[0]], exact[0]);
    if (!exact.length) {
      const gets = column.is_refused ? "is refused" : `gets the id ${column.other}`;
      list.append(element("li", text.length < of
        ? `This is none of the most frequent values; a value that is not in the codebook ${gets}.`
        : `This value is not in the codebook; it ${gets}.`));
      if (!found.length && !column.is_refused) showSegment(column.segment_of_other);
    }
  };
  byId("find").addEventListener("keydown", (event) => {
    if (event.key === "Enter") byId("found").querySelector("button")?.click();
  });
  byId("pick").addEventListener("change", (event) => showColumn(Number(event.target.value)));
  byId("segment").addEventListener("input", (event) => showSegment(event.target.value));
  byId("find").addEventListener("input", find);
  showColumn(Number(byId("pick").value));

  // 5. Calibration of all columns, or of one.
  const calibrate = (i) => {
    const bins = i < 0 ? summary.trust.calibration : summary.trust.columns[i].calibration;
    const rows = bins.rate.map((_, k) => Object.fromEntries(Object.entries(bins).map(([key, list]) => [key, list[k]])));
    byId("bins").tBodies[0].replaceChildren(...rows.map((bin) => {
      const row = element("tr");
      for (const fact of ["rate_at_fit", "rate", "low", "high"]) row.append(cell(bin[fact], rate(bin[fact])));
      row.append(cell(bin.rows, whole(bin.rows)), cell(bin.n_ids, whole(bin.n_ids)));
      return row;
    }));
    exchange("calibration", { bins: rows });
  };
  if (summary.trust) {
    byId("calibrate").addEventListener("change", (event) => calibrate(Number(event.target.value)));
    calibrate(-1);
  }

  Promise.all(drawn).then(() => {
    if (budgets) {
      const nearest = (x) => budgets.budget.reduce((best, b, i) => (Math.abs(Math.log(b / x)) < Math.abs(Math.log(budgets.budget[best] / x)) ? i : best), 0);
      views.budgets.addEventListener("click", (event, item) => {
        if (item?.datum?.budget) { step = nearest(item.datum.budget); showStep(); }
      });
      showStep();
    }
    views.strip.addEventListener("click", (event, item) => { if (item?.datum?.i != null) showSegment(item.datum.i); });
    exchange("strip", { picked: [strips[segment]] });
    document.documentElement.dataset.ready = "true";
  });
})();
