import { render } from 'preact'
import { enter } from './api/session'
import { listen } from './app/keys'
import { watch } from './app/notify'
import { begin } from './app/store'
import './app/theme'
import './style/base.css'
import './style/frame.css'
import './style/rail.css'
import './style/header.css'
import './style/track.css'
import './style/drawer.css'
import './style/terminal.css'
import './style/journal.css'
import './style/legs.css'
import './style/inbox.css'
import './style/changes.css'
import './style/numbers.css'
import './style/council.css'
import './style/relay.css'
import './style/phases.css'
import './style/events.css'
import './style/graph.css'
import './style/overlays.css'
import { App } from './view/App'

const root = document.getElementById('app')
await enter()
if (root) render(<App />, root)
begin()
watch()
listen()
