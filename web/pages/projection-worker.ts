/** A thread that finds places for vectors. */

import { project } from '../model/projection.js';

self.onmessage = ({ data }: MessageEvent<{ rows: Float32Array; dim: number }>): void => {
  const places = project(data.rows, data.dim);
  self.postMessage(places, { transfer: [places.buffer] });
};
