// Search: lines that hold what was typed, and the lines above them. Works without, as plain folds.
const tree = document.querySelector("ul.tree");
const box = document.querySelector(".find input");
const told = document.querySelector(".find output");
const lines = [...tree.querySelectorAll("li")];
const above = new Map(lines.map((line, place) => [line, place]));
const plain = (text) => text.normalize("NFKC").toLowerCase();
const own = lines.map((line) => plain(line.querySelector("bdi").textContent));
const parent = lines.map((line) => above.get(line.parentElement.closest("li")));
document.querySelector(".find").hidden = false;

function search() {
  const wanted = plain(box.value.trim());
  const kept = new Uint8Array(lines.length);
  let hits = 0;
  // Backwards, so that a line is decided after all that is below it.
  for (let place = lines.length - 1; place >= 0; place--) {
    const hit = wanted !== "" && own[place].includes(wanted);
    hits += hit;
    lines[place].classList.toggle("hit", hit);
    const fold = lines[place].firstElementChild;
    if (fold.tagName === "DETAILS") fold.open = kept[place] === 1;
    // What goes on from a hit is one too: it stays folded below it.
    const up = parent[place];
    if (up !== undefined && (kept[place] || (hit && !own[up].includes(wanted)))) kept[up] = 1;
    lines[place].hidden = wanted !== "" && !hit && !kept[place];
  }
  told.textContent = wanted === "" ? "" : `${hits.toLocaleString("en")} of ${lines.length.toLocaleString("en")}`;
}

let waiting = 0;
box.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, 120);
});
document.querySelector(".find button").addEventListener("click", () => {
  const folds = [...tree.querySelectorAll("details")];
  const open = !folds.some((fold) => fold.open);
  for (const fold of folds) fold.open = open;
});
