// The lines in which two texts differ.

// Lines around a difference that are shown.
const AROUND = 2;
// Cells of the table of the longest common subsequence; what would need more is shown as replaced.
const MOST_CELLS = 4_000_000;

// Lines with their mark: `- ` of the first text alone, `+ ` of the second, two spaces for those around them, `…` where some are left out.
// None where the texts are equal.
export function changes(before, after) {
  const [a, b] = [before, after].map((text) => text.split("\n"));
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) {
    head += 1;
  }
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) {
    tail += 1;
  }
  const middle = steps(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  if (middle.length === 0) {
    return [];
  }
  const same = (lines) => lines.map((line) => `  ${line}`);
  return shortened([...same(a.slice(0, head)), ...middle, ...same(a.slice(a.length - tail))]);
}

function steps(a, b) {
  const width = b.length + 1;
  if ((a.length + 1) * width > MOST_CELLS) {
    return [...a.map((line) => `- ${line}`), ...b.map((line) => `+ ${line}`)];
  }
  // Length of the longest common subsequence from a line of each on.
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1] + 1
        : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const lines = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push(`  ${a[i]}`);
      i += 1;
      j += 1;
    } else if (j === b.length || (i < a.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      lines.push(`- ${a[i]}`);
      i += 1;
    } else {
      lines.push(`+ ${b[j]}`);
      j += 1;
    }
  }
  return lines;
}

function shortened(lines) {
  const isChange = (line) => line !== undefined && !line.startsWith("  ");
  const isNear = lines.map((_, at) => {
    for (let near = at - AROUND; near <= at + AROUND; near += 1) {
      if (isChange(lines[near])) {
        return true;
      }
    }
    return false;
  });
  return lines.flatMap((line, at) => (isNear[at] ? [line] : isNear[at - 1] === false ? [] : ["…"]));
}
