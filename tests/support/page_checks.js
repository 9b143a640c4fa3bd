({
  // What is asked of every page, in the browser: functions without arguments.
  // Levels of the headings, in order.
  outline: () => [...document.querySelectorAll('h1, h2, h3, h4')].map(each => Number(each.tagName[1])),
  // What can be used or looked at and has no name.
  unlabelled: () => [...document.querySelectorAll('input:not([type=hidden]), select, button, a, svg, canvas, nav, [role=group]')]
    .filter(each => !each.closest('[aria-hidden=true]') && getComputedStyle(each).display !== 'none')
    .filter(each => {
        const by = (each.getAttribute('aria-labelledby') || '').split(' ').filter(Boolean)
            .map(id => document.getElementById(id)).map(found => found ? found.textContent : '').join(' ');
        const words = [each.getAttribute('aria-label'), by, ...[...(each.labels || [])].map(label => label.textContent),
            ['A', 'BUTTON'].includes(each.tagName) ? each.textContent : ''].join('').trim();
        return !words;
    }).map(each => each.outerHTML.slice(0, 120)),
  // Ids that stand on more than one element.
  twice: () => { const ids = [...document.querySelectorAll('[id]')].map(each => each.id);
    return ids.filter((id, at) => ids.indexOf(id) !== at); },
  // Text and lines that do not stand out enough from what is behind them, with their contrast (WCAG 2.2, AA).
  faint: () => {
    const channels = text => (text.match(/[0-9.]+/g) || []).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
        .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = each => { for (; each; each = each.parentElement) {
        const colour = channels(getComputedStyle(each).backgroundColor);
        if (colour.length === 3 || colour[3] > 0) return colour; } return [255, 255, 255]; };
    const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
    const found = [];
    const shown = each => each.getClientRects().length && getComputedStyle(each).visibility === 'visible';
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode, each = node.parentElement;
        if (!node.data.trim() || !shown(each) || ['TITLE', 'DESC', 'OPTION'].includes(each.tagName.toUpperCase())) continue;
        const style = getComputedStyle(each), size = parseFloat(style.fontSize);
        const ink = each instanceof SVGElement ? style.fill : style.color;
        const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
        const got = ratio(channels(ink), behind(each));
        if (got < least) found.push([node.data.trim().slice(0, 40), got]);
    }
    for (const name of ['.line', '.mark', '.arrow', '.curve', '.value', '.ring', '.sure'])
        for (const each of document.querySelectorAll('.chart ' + name + ', .bar ' + name)) {
            const style = getComputedStyle(each);
            if (!shown(each)) continue;
            const ink = style.stroke === 'none' ? style.fill : style.stroke;
            const clear = style.stroke === 'none' ? Number(style.fillOpacity) : 1, ground = behind(each.closest('svg'));
            const got = ratio(channels(ink).map((c, at) => c * clear + ground[at] * (1 - clear)), ground);
            if (got < (name === '.sure' ? 2 : 3)) found.push([name, got]);
        }
    return found; },
  // How many of each landmark there are.
  landmarks: () => ['header', 'main', 'footer'].map(name => document.querySelectorAll('body > ' + name).length),
})
