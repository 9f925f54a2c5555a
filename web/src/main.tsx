import { render } from "preact";
import { App } from "./app";
import { takeToken } from "./link";
import { readSaved } from "./save";
import { Store } from "./store";
import "./style.css";

const store = new Store();
const saved = readSaved();
if (saved) void saved.then((page) => store.show(page));
else void store.begin(takeToken());
render(<App store={store} />, document.getElementById("page") as HTMLElement);
