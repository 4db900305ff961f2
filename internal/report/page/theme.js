"use strict";
// Before the first paint, so that a chosen theme does not flash.
document.documentElement.classList.add("js");
try {
  const theme = localStorage.getItem("cursor-wrap-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch { /* a browser that keeps nothing for files */ }
