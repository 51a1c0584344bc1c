import "./page.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { onSite } from "./lib/site";
import { page } from "./lib/state.svelte";

const target = document.getElementById("page");
if (target) mount(App, { target });
void page.start();
// The service worker makes the page available offline.
if (onSite && "serviceWorker" in navigator) void navigator.serviceWorker.register("service.js");
