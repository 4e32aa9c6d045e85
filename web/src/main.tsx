import { render } from 'preact'
import { listen } from './app/keys'
import { watch } from './app/notify'
import { begin } from './app/store'
import './app/theme'
import './style/base.css'
import './style/frame.css'
import './style/views.css'
import { App } from './view/App'

const root = document.getElementById('app')
if (root) render(<App />, root)
begin()
watch()
listen()
