/*
 * html_page.c - how the page looks. It fetches nothing and runs nothing.
 */
#include "html_page.h"

static const char *const style[] = {
    ":root{color-scheme:light dark;--ink:#1c2128;--soft:#57606a;--page:#fff;",
    "--card:#f6f8fa;--edge:#d0d7de;--good:#1a7f37;--good-bg:#dafbe1;",
    "--bad:#c0262d;--bad-bg:#ffdcd9;--warn:#8a5a00;--warn-bg:#fff1c2;",
    "--one:#2f6fb5;--two:#8a63d2}\n",
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa4af;",
    "--page:#0f1318;--card:#171c23;--edge:#30363d;--good:#4fc46b;",
    "--good-bg:#12351d;--bad:#ff7b72;--bad-bg:#4a1517;--warn:#e3b341;",
    "--warn-bg:#3b2d05;--one:#5b9be0;--two:#b392f0}}\n",
    "*{box-sizing:border-box}body{margin:0 auto;max-width:72rem;",
    "padding:1.5rem;font:16px/1.5 system-ui,sans-serif;color:var(--ink);",
    "background:var(--page)}\n",
    "h1{font-size:1.4rem;margin:0 0 .3rem}h2{font-size:1.1rem;",
    "margin:2rem 0 .6rem;border-bottom:1px solid var(--edge)}\n",
    "h3{font-size:1rem;margin:1.2rem 0 .4rem}small{display:block;",
    "color:var(--soft);font-weight:400}\n",
    ".verdict{border:1px solid var(--edge);border-left:.6rem solid;",
    "border-radius:.4rem;padding:.7rem 1rem;margin:.6rem 0;",
    "background:var(--card)}.verdict b{font-size:1.2rem;margin-right:.6rem}\n",
    ".verdict.good{border-left-color:var(--good)}.verdict.good b{",
    "color:var(--good)}.verdict.bad{border-left-color:var(--bad)}",
    ".verdict.bad b{color:var(--bad)}\n",
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem}",
    "th,td{border:1px solid var(--edge);padding:.3rem .6rem;",
    "text-align:left;vertical-align:top}thead td{border:0}",
    "tbody th{font-weight:600}.matrix td{white-space:nowrap}\n",
    "td.good{background:var(--good-bg);color:var(--good)}td.bad{",
    "background:var(--bad-bg);color:var(--bad);font-weight:700}",
    "td.waived,p.waived{background:var(--warn-bg);color:var(--warn)}",
    "td.no{color:var(--soft)}p.waived{padding:.3rem .6rem}\n",
    "pre{overflow-x:auto;background:var(--card);border:1px solid ",
    "var(--edge);border-radius:.4rem;padding:.7rem;font-size:.85rem}",
    "code,pre{font-family:ui-monospace,monospace}code{",
    "overflow-wrap:anywhere}\n",
    "details{margin:.4rem 0}summary{cursor:pointer}.failure{border:1px ",
    "solid var(--edge);border-radius:.4rem;padding:.4rem .8rem}.class{",
    "background:var(--bad-bg);color:var(--bad);border-radius:.3rem;",
    "padding:0 .4rem;font-size:.85rem;white-space:nowrap}\n",
    "figure{margin:.6rem 0}figcaption,.key{font-size:.85rem;",
    "color:var(--soft)}svg{max-width:none;display:block}\n",
    "svg text{font:11px system-ui,sans-serif;fill:var(--soft);",
    "text-anchor:middle}.axis{stroke:var(--soft)}.limit{stroke:var(--bad);",
    "stroke-dasharray:4 3}\n",
    "rect.out{fill:var(--one)}rect.lse{fill:var(--two)}rect.over{",
    "fill:var(--bad)}rect.ground{fill:var(--card);stroke:var(--edge)}\n",
    ".box{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 1em}",
    ".box.out{background:var(--one)}.box.lse{background:var(--two)}",
    ".box.over{background:var(--bad)}\n",
};

void html_begin(text_buffer *b, const char *title) {
  text_add(b,
           "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
           "charset=\"utf-8\">\n<meta name=\"viewport\" "
           "content=\"width=device-width, initial-scale=1\">\n<meta "
           "http-equiv=\"Content-Security-Policy\" content=\"default-src "
           "'none'; style-src 'unsafe-inline'\">\n<title>");
  text_data(b, title);
  text_add(b, "</title>\n<style>\n");
  for (size_t i = 0; i < sizeof style / sizeof style[0]; i++)
    text_add(b, "%s", style[i]);
  text_add(b, "</style>\n</head>\n<body>\n");
}

void html_end(text_buffer *b) {
  text_add(b, "</body>\n</html>\n");
}
