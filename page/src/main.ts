import "./page.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { page } from "./lib/state.svelte";

const target = document.getElementById("page");
if (target) mount(App, { target });
void page.start();
