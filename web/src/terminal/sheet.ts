// The terminal writes its colours into <style> elements and style attributes, which the page's policy
// forbids, as it should. The same rules are allowed when they come by the object model: a style element
// that is made here feeds a constructed sheet instead, and a style attribute sets the element's style.

let done = false

export function keepPolicy(): void {
  if (done) return
  done = true
  const make = document.createElement.bind(document)
  document.createElement = ((name: string, options?: ElementCreationOptions): Element => {
    return name.toLowerCase() === 'style' ? sheet(make('stafette-sheet')) : make(name, options)
  }) as typeof document.createElement
  const set = Element.prototype.setAttribute
  HTMLElement.prototype.setAttribute = function (this: HTMLElement, name: string, value: string): void {
    if (name === 'style') this.style.cssText = value
    else set.call(this, name, value)
  }
}

/** An element that looks to its maker like a style element. */
function sheet(element: HTMLElement): HTMLElement {
  const rules = new CSSStyleSheet()
  element.hidden = true
  let text = ''
  const write = (css: string): void => {
    text = css
    rules.replaceSync(css)
    if (!document.adoptedStyleSheets.includes(rules)) document.adoptedStyleSheets.push(rules)
  }
  Object.defineProperty(element, 'textContent', { get: () => text, set: write })
  const remove = element.remove.bind(element)
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== rules)
    remove()
  }
  return element
}
