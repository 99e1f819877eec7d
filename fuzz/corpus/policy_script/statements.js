if (!t) return { x: v.x, y: [n, -n % 7] };
const units = { bps: 1, Kbps: 1e3, Mbps: 1e6 };
const bits = (rate) => { const at = rate.indexOf(" "); return Number(rate.slice(0, at)) * units[rate.slice(at + 1)]; };
let best = n;
if (l.includes(t) || typeof v === "string" && v < t) { best = bits("800 Mbps") * 0.1; } else best = t == n ? null : best;
return [best, t.length, String(v).split(",").join(";")];
