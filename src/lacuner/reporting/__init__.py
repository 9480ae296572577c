"""Reports: figures in SVG and self-contained HTML pages, for every command that writes one."""
