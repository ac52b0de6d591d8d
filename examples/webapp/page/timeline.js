// The timeline: one lane for each replica, the last seconds from left to right.
const span = 15_000; // ms
const lanePadding = 20;
const runHeight = 7;
const maxRequestHeight = 5;

export class Timeline {
  #canvas;
  #past = []; // happenings that are over
  #news = { running: [], answers: [] };
  #offset = 0; // from the page's clock to the app's
  #lanes = []; // what to draw

  constructor(canvas) {
    this.#canvas = canvas;
    const frame = () => {
      this.#draw();
      requestAnimationFrame(frame);
    };
    frame();
  }

  // add takes what /news answered.
  add(news) {
    this.#news = news;
    this.#offset = news.now - performance.now();
    this.#past = this.#past.concat(news.recent).filter((h) => h.at + h.took > news.now - span - 1000);
    const all = this.#past.concat(news.running.map((h) => ({ ...h, took: Infinity })));
    this.#lanes = news.answers.map((_, i) => {
      const own = all.filter((h) => h.replica === i).sort((a, b) => a.at - b.at);
      return {
        runs: pack(own.filter((h) => h.what === "run")),
        requests: pack(own.filter((h) => h.what !== "run")),
      };
    });
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const scale = window.devicePixelRatio || 1;
    if (this.#canvas.width !== Math.round(width * scale) || this.#canvas.height !== Math.round(height * scale)) {
      this.#canvas.width = Math.round(width * scale);
      this.#canvas.height = Math.round(height * scale);
    }
    const g = this.#canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`);
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = "12px system-ui, sans-serif";

    const now = performance.now() + this.#offset;
    const view = { g, colour, now, width, x: (t) => width - ((now - t) / span) * width };
    const axis = 18;
    drawSeconds(view, height, axis);
    const lane = (height - axis) / Math.max(this.#lanes.length, 1);
    this.#lanes.forEach((l, i) => drawLane(view, l, i, i * lane, lane));
  }
}

// pack gives every happening the first row that is free when it begins.
function pack(happenings) {
  const ends = [];
  const placed = happenings.map((h) => {
    let row = ends.findIndex((end) => end <= h.at);
    if (row < 0) row = ends.length;
    ends[row] = h.at + h.took;
    return { ...h, row };
  });
  return { placed, rows: ends.length };
}

function drawSeconds({ g, colour, now, x }, height, axis) {
  g.strokeStyle = colour("line");
  g.fillStyle = colour("soft");
  g.textAlign = "center";
  for (let ago = 0; ago < span; ago += 1000) {
    const t = Math.floor((now - ago) / 1000) * 1000;
    g.beginPath();
    g.moveTo(x(t), 0);
    g.lineTo(x(t), height - axis);
    g.stroke();
    if (t >= 0 && (t / 1000) % 2 === 0) g.fillText(`${t / 1000} s`, x(t), height - 4);
  }
}

function drawLane({ g, colour, now, width, x }, { runs, requests }, index, top, height) {
  g.strokeStyle = colour("soft");
  g.beginPath();
  g.moveTo(0, top + height - 0.5);
  g.lineTo(width, top + height - 0.5);
  g.stroke();
  g.fillStyle = colour("ink");
  g.textAlign = "left";
  g.fillText(`Replica ${index + 1}`, 2, top + 14);

  const bar = (h, y, thick) => {
    const left = x(h.at);
    const right = x(Math.min(h.at + h.took, now));
    g.fillStyle = colour(h.what);
    g.fillRect(left, y, Math.max(right - left, 2), thick);
  };
  const room = height - lanePadding - 6;
  const thickRun = Math.min(runHeight, (room / 2) / Math.max(runs.rows, 1));
  for (const h of runs.placed) bar(h, top + lanePadding + h.row * thickRun, Math.max(thickRun - 1, 1));

  const below = top + lanePadding + runs.rows * thickRun + 3;
  const left = top + height - 4 - below;
  const thick = Math.min(maxRequestHeight, left / Math.max(requests.rows, 1));
  for (const h of requests.placed) bar(h, below + h.row * thick, Math.max(thick - 0.75, 0.75));
}
