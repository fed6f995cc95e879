/** REST and gRPC for a storage folder that is open within a program. */

import type { DoorServices } from '../http/context/services.js';
import type { NodeSettings } from './config/settings.js';
import type { ListenOptions, OpenDoors } from './troupe-types.js';

const CLOSE_GRACE_MS = 30_000;
const MEBIBYTE = 1 << 20;

/** Errors: the system's, where an address cannot be taken. What is loaded for this is not loaded by programs without doors. */
export async function openDoors(services: DoorServices, { service }: NodeSettings, options: ListenOptions): Promise<OpenDoors> {
  const { grpcPort = null, host = '127.0.0.1', port = 0 } = options;
  const [{ OWN_PAGES }, { startRestDoor }, { startGrpcDoor }] = await Promise.all([
    import('../http/rest/own-pages.js'),
    import('../http/rest/start.js'),
    import('../http/grpc/server.js'),
  ]);
  const bytesMax = service.max_request_size_mb * MEBIBYTE;
  const { compression_min_bytes: packFromBytes, enable_cors: cors, enable_static_content: hasPages } = service;
  const pages = hasPages ? (service.static_content_dir ?? OWN_PAGES) : null;
  const rest = await startRestDoor(services, { host, port, maxBodyBytes: bytesMax, cors, packFromBytes, pages, logRequests: false });
  const grpc =
    grpcPort === null
      ? null
      : await startGrpcDoor(services, { host, port: grpcPort, maxMessageBytes: bytesMax, logRequests: false }).catch(
          async (error: unknown) => {
            await rest.close(0);
            throw error;
          },
        );
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${rest.port}`,
    port: rest.port,
    grpcPort: grpc?.port ?? null,
    async close() {
      await Promise.all([rest.close(CLOSE_GRACE_MS), grpc?.close(CLOSE_GRACE_MS)]);
    },
  };
}
