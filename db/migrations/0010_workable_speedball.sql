ALTER TABLE "job" ADD COLUMN "lane" text DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX "job_queue_lane" ON "job" USING btree ("queue","lane","run_at","id");