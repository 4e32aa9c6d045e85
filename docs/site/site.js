// The theme before anything is drawn, then search, the menu of small screens, and copying.

const saved = localStorage.getItem('stafette-theme')
const isDark = saved ? saved === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
document.documentElement.dataset.theme = isDark ? 'dark' : 'light'

/** Every word has to be there; a title counts more than a heading, and that more than the text. */
function find(entries, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const found = []
  for (const entry of entries) {
    const [title, heading, , , body] = entry.map((part) => part.toLowerCase())
    let score = 0
    const hasAll = words.every((word) => {
      const here = (title.includes(word) ? 4 : 0) + (heading.includes(word) ? 8 : 0) + (heading === word ? 8 : 0) + (body.includes(word) ? 1 : 0)
      score += here
      return here > 0
    })
    if (words.length && hasAll) found.push([score, entry])
  }
  return found.sort(([a], [b]) => b - a).slice(0, 12).map(([, entry]) => entry)
}

/** The text around the first word that was found. */
function excerpt(body, words) {
  const low = body.toLowerCase()
  const at = Math.min(...words.map((word) => low.indexOf(word)).filter((at) => at >= 0), body.length)
  const from = at === body.length ? 0 : Math.max(0, at - 30)
  return (from ? '…' : '') + body.slice(from, from + 140).replace(/\s+/g, ' ')
}

/** Puts text into a node, with the words marked. Nothing of it becomes HTML. */
function mark(node, text, words) {
  const low = text.toLowerCase()
  let from = 0
  while (from < text.length) {
    const hits = words.map((word) => [low.indexOf(word, from), word]).filter(([at]) => at >= 0)
    if (!hits.length || low.length !== text.length) break
    const [at, word] = hits.sort(([a], [b]) => a - b)[0]
    node.append(text.slice(from, at))
    node.append(Object.assign(document.createElement('mark'), { textContent: text.slice(at, at + word.length) }))
    from = at + word.length
  }
  node.append(text.slice(from))
  return node
}

addEventListener('DOMContentLoaded', () => {
  const up = document.body.dataset.up
  const input = document.querySelector('.search input')
  const list = document.querySelector('.search ol')
  const menu = document.querySelector('.menu')
  let chosen = 0

  // The index is loaded when somebody begins to search.
  const load = () => {
    if (document.querySelector('#index')) return
    const script = Object.assign(document.createElement('script'), { id: 'index', src: `${up}search.js` })
    script.addEventListener('load', show)
    document.head.append(script)
  }

  const choose = (next) => {
    const links = [...list.querySelectorAll('a')]
    links[chosen]?.classList.remove('here')
    chosen = links.length ? (next + links.length) % links.length : 0
    links[chosen]?.classList.add('here')
    links[chosen]?.scrollIntoView({ block: 'nearest' })
  }

  function show() {
    const text = input.value.trim()
    const words = text.toLowerCase().split(/\s+/).filter(Boolean)
    list.replaceChildren()
    list.hidden = !text || !window.stafetteSearch
    if (list.hidden) return
    for (const [title, heading, page, anchor, body] of find(window.stafetteSearch, text)) {
      const link = Object.assign(document.createElement('a'), { href: up + page + (anchor && `#${anchor}`) })
      mark(link, heading === title ? title : `${title} › ${heading}`, words)
      link.append(mark(document.createElement('small'), excerpt(body, words), words))
      const item = document.createElement('li')
      item.append(link)
      list.append(item)
    }
    if (!list.children.length) {
      const item = document.createElement('li')
      item.append(Object.assign(document.createElement('p'), { textContent: `Nothing about “${text}”` }))
      list.append(item)
    }
    chosen = 0
    choose(0)
  }

  input.addEventListener('focus', load)
  input.addEventListener('input', show)
  input.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') choose(chosen + 1)
    else if (event.key === 'ArrowUp') choose(chosen - 1)
    else if (event.key === 'Enter') list.querySelectorAll('a')[chosen]?.click()
    else if (event.key === 'Escape') input.blur()
    else return
    event.preventDefault()
  })
  document.addEventListener('click', (event) => {
    if (!event.target.closest('.search') || event.target.closest('.search a')) list.hidden = true
  })
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof HTMLInputElement
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.key !== '/') return
    event.preventDefault()
    input.focus()
  })

  document.querySelector('.theme').addEventListener('click', () => {
    const { dataset } = document.documentElement
    dataset.theme = dataset.theme === 'dark' ? 'light' : 'dark'
    localStorage.setItem('stafette-theme', dataset.theme)
  })

  menu.addEventListener('click', () => {
    menu.setAttribute('aria-expanded', String(document.body.classList.toggle('has-menu')))
  })

  const sidebar = document.querySelector('#sidebar')
  const here = sidebar.querySelector('[aria-current]')
  if (here && here.offsetTop > sidebar.clientHeight - 40) sidebar.scrollTop = Math.max(0, here.offsetTop - sidebar.clientHeight / 2)

  // Of a console block only what is typed is copied.
  for (const figure of document.querySelectorAll('.code')) {
    const button = Object.assign(document.createElement('button'), { textContent: 'Copy' })
    button.addEventListener('click', async () => {
      const typed = [...figure.querySelectorAll('b')].map((node) => node.textContent).join('\n')
      const text = figure.classList.contains('console') ? typed : figure.querySelector('code').textContent
      await navigator.clipboard.writeText(text)
      button.textContent = 'Copied'
      setTimeout(() => (button.textContent = 'Copy'), 1500)
    })
    figure.append(button)
  }
})
