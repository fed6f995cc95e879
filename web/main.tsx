/** The dashboard starts here. */

import { createRoot } from 'react-dom/client';
import { App } from './app.js';
import './style.css';

createRoot(document.getElementById('page') as HTMLElement).render(<App />);
