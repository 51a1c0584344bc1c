import "../page.css";
import { mount } from "svelte";
import { page } from "../lib/state.svelte";
import type { Sheet as Data } from "../lib/types";
import Sheet from "./Sheet.svelte";

const target = document.getElementById("page");
const sheet = (globalThis as unknown as { vidrio: { data: Data } }).vidrio.data;
page.dress();
if (target) mount(Sheet, { target, props: { sheet } });
